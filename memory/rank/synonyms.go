package rank

import "strings"

// synonyms have English words as stems, Chinese ones as pairs of characters.
var synonyms = func() map[string][]string {
	table := make(map[string][]string)
	for group := range strings.SplitSeq(synonymWords, ";") {
		head, rest, narrower := strings.Cut(group, ">")
		words := strings.Fields(head + " " + rest)
		for i, a := range words {
			for j, b := range words {
				if i != j && (!narrower || i == 0 || j == 0) {
					table[stemWord(a)] = append(table[stemWord(a)], stemWord(b))
				}
			}
		}
	}
	return table
}()

// The word before > is a synonym of all behind it, which are none of each other.
const synonymWords = `job career occupation profession;doctor physician;hospital clinic;pet>dog cat puppy kitten;dog puppy;cat kitten;hobby pastime;
car vehicle auto;trip travel journey vacation;child>son daughter boy girl;buy purchase;gift present;house home apartment;
begin start;finish complete;help assist support;movie cinema film;sad upset unhappy;happy glad joy;scared afraid fear;
big large huge;small little tiny;sick ill;exercise workout gym fitness;picture image;friend buddy pal;
spouse>wife husband partner;parent>mother father;sibling>brother sister;money cash fund;cost price expense;
eat food meal dish cuisine;dinner supper;game gaming;book novel;song music;artist painter;sport athletic;study learn;
school>college university;teacher professor instructor;meeting conference;boss manager;company firm business;
fix repair;error bug fault;deadline due;choose pick select;country nation abroad;city town;beautiful gorgeous;
relax unwind destress;stress anxiety pressure;volunteer charity;contest competition tournament;win award prize;
hurt injure;marry wedding marriage;argue fight quarrel;ocean sea;forest wood;mountain hike hiking trail;
religion faith church;birth born birthday;live reside residence;move relocate;quit resign;plan intend;dream goal ambition;
hate dislike;favorite best;instrument>guitar piano violin drum;role responsibility duty;company employer;
工作 职业 上班;电影 影片;妈妈 母亲;爸爸 父亲;孩子>儿子 女儿;喜欢 喜爱 爱好;生病 发烧;医院 医生;旅行 旅游 出游;
开心 高兴 快乐;难过 伤心 失落;害怕 恐惧;朋友 好友;吃饭 用餐;餐厅 饭店 饭馆;老师 教师;学校 大学;同学 同事;购买 买了;
礼物 礼品;价格 费用 价钱 成本;预算 经费;开始 启动;完成 结束;负责 主管;截止 期限;会议 开会;错误 故障 异常;修复 解决;
锻炼 运动 健身;音乐 歌曲;乐器>钢琴 吉他;小说 书籍;宠物>小狗 小猫;上线 发布 部署;电话 手机;地址 住址;公司 企业`
