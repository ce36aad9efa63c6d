package bot_test

import (
	"ebb/memory"
)

// The rooms of the talk, by their places.
const (
	roomA = iota
	roomB
	roomAlice // a private chat with the bot
	roomWang
)

// self is a person's statement about themself, with its correction.
func self(room int, by, lang string, asks [2]string, statements ...statement) plant {
	for i := range statements {
		statements[i].subject = by
		if statements[i].kind == "" {
			statements[i].kind = memory.KindProfile
		}
	}
	return plant{room: room, by: by, lang: lang, own: true, statements: statements, asks: asks}
}

func states(said, content, value string) statement {
	return statement{said: said, content: content, value: value}
}

func prefer(said, content, value string) statement {
	return statement{said: said, content: content, value: value, kind: memory.KindPreference}
}

func keyed(key, said, content, value string) statement {
	return statement{said: said, content: content, value: value, key: key}
}

func corrected(said, content, value string) statement {
	return statement{said: said, content: content, value: value, replaces: true}
}

// personal are people's statements about themselves, in groups and alone with the bot.
var personal = []plant{
	self(roomA, "李雷", "zh", [2]string{"李雷什么时间能开会？", "约李雷开会要注意什么"}, prefer("我开会一般只能约四点以后", "李雷开会只能约四点以后", "四点以后")),
	self(roomA, "王芳", "zh", [2]string{"王芳喜欢什么主题？", "王芳看报表用哪种主题"}, prefer("我看报表习惯用深色主题", "王芳看报表习惯用深色主题", "深色主题")),
	self(roomA, "李雷", "zh", [2]string{"李雷值班时打哪个电话？", "李雷的座机是多少"}, states("我值班的时候请打座机 8807", "李雷值班时的座机是 8807", "8807")),
	self(roomA, "Alice", "en", [2]string{"How does Alice like her reviews?", "does Alice want review calls or comments"},
		prefer("for reviews I like written comments, please no calls", "Alice prefers reviews as written comments, without calls.", "written comments")),
	self(roomA, "Bob", "en", [2]string{"Where does Bob work on Mondays?", "which office is Bob in on Monday"},
		states("on Mondays I work from the Hamburg office", "Bob works from the Hamburg office on Mondays.", "Hamburg")),
	self(roomA, "Alice", "en", [2]string{"Which format does Alice want for the changelog?", "Alice changelog format"},
		prefer("I always want the changelog in AsciiDoc", "Alice wants the changelog in AsciiDoc.", "AsciiDoc")),
	self(roomB, "赵敏", "zh", [2]string{"给赵敏发邮件要抄送谁？", "赵敏的邮件要抄送哪个部门"}, prefer("给我发邮件都抄送法务部", "赵敏希望发给她的邮件抄送法务部", "法务部")),
	self(roomB, "Dave", "en", [2]string{"When is Dave out of the office?", "which afternoon is Dave away"},
		states("I am out every Wednesday afternoon", "Dave is out every Wednesday afternoon.", "Wednesday afternoon")),

	self(roomAlice, "Alice", "en", [2]string{"Which locker is mine in the new office?", "my locker number"},
		keyed("Alice locker", "my locker in the new office has the number L-318", "Alice's locker in the new office is number L-318.", "L-318"),
		keyed("Alice locker", "they swapped lockers, mine has the number L-527", "Alice's locker in the new office is now number L-527.", "L-527")),
	self(roomAlice, "Alice", "en", [2]string{"Which train do I take in the morning?", "departure of my morning train"},
		states("in the morning I take the 7:42 train", "The morning train that Alice takes is at 7:42.", "7:42"),
		states("they changed the timetable, in the morning I take the 8:09 train", "The morning train that Alice takes is now at 8:09.", "8:09")),
	self(roomAlice, "Alice", "en", [2]string{"What is the flight number of my trip to Oslo?", "which flight do I take to Oslo"},
		states("I booked SK1472 to Oslo", "Alice's flight to Oslo is SK1472.", "SK1472"),
		corrected("the airline moved me to SK4603 for Oslo", "Alice flies to Oslo with SK4603.", "SK4603")),
	self(roomAlice, "Alice", "en", [2]string{"Who teaches me piano?", "name of my piano teacher"}, states("my piano teacher is Mrs. Okafor", "Alice's piano teacher is Mrs. Okafor.", "Okafor")),
	self(roomAlice, "Alice", "en", [2]string{"Where am I moving in spring?", "city that I will move to"}, states("I will move to Lisbon in spring", "Alice will move to Lisbon in spring.", "Lisbon")),
	self(roomAlice, "Alice", "en", [2]string{"What is my cat called?", "name of the cat"}, states("my cat is called Biscuit", "Alice has a cat called Biscuit.", "Biscuit")),
	self(roomAlice, "Alice", "en", [2]string{"How do I want your answers to look?", "format of answers for me"},
		prefer("for me, answers as bullet points are best", "Alice prefers answers as bullet points.", "bullet points")),
	self(roomAlice, "Alice", "en", [2]string{"Who was my manager at the old job?", "name of my former manager"}, states("my manager at the old job was Henrik", "Alice's manager at the old job was Henrik.", "Henrik")),
	self(roomAlice, "Alice", "en", [2]string{"Who waters the plants when I travel?", "which neighbour looks after my plants"},
		states("my neighbour Rosalind waters the plants when I travel", "Rosalind, Alice's neighbour, waters her plants when she travels.", "Rosalind")),
	self(roomAlice, "Alice", "en", [2]string{"Which language am I learning?", "what language do I learn on Tuesday evenings"},
		states("I am learning Portuguese on Tuesday evenings", "Alice is learning Portuguese on Tuesday evenings.", "Portuguese")),
	self(roomAlice, "Alice", "en", [2]string{"Which team do I want to switch to?", "my wish to change teams"},
		states("between us, I would like to switch to the robotics team", "Alice would like to switch to the robotics team.", "robotics team")),
	self(roomAlice, "Alice", "en", [2]string{"How large is the budget for my training?", "training budget of mine"},
		states("my training budget is 2460 euros", "Alice's training budget is 2460 euros.", "2460")),

	self(roomWang, "王芳", "zh", [2]string{"我的工位号是多少？", "我坐在哪个工位"},
		keyed("王芳工位", "我的新工位号是 B-217", "王芳的工位号是 B-217", "B-217"), keyed("王芳工位", "我又搬了，工位换成 C-084", "王芳的工位号改为 C-084", "C-084")),
	self(roomWang, "王芳", "zh", [2]string{"我坐哪趟高铁去青岛？", "去青岛的高铁车次"},
		states("我去青岛的高铁票买好了，G1085", "王芳去青岛的高铁是 G1085", "G1085"), corrected("我改签了，去青岛坐 G2093", "王芳去青岛的高铁改为 G2093", "G2093")),
	self(roomWang, "王芳", "zh", [2]string{"我的培训预算还剩多少？", "培训预算的余额"},
		states("我的培训预算还剩三千八百元", "王芳的培训预算余额是三千八百元", "三千八百"), states("我报了个班，培训预算只剩一千六百元了", "王芳的培训预算余额现在是一千六百元", "一千六百")),
	self(roomWang, "王芳", "zh", [2]string{"我女儿在哪里上学？", "女儿读的是哪所小学"}, states("我女儿今年进了梧桐小学", "王芳的女儿在梧桐小学读书", "梧桐小学")),
	self(roomWang, "王芳", "zh", [2]string{"我周四晚上要上什么课？", "我报的是什么课"}, states("我周四晚上要上陶艺课", "王芳周四晚上上陶艺课", "陶艺")),
	self(roomWang, "王芳", "zh", [2]string{"我明年打算去哪里住？", "我想去住一阵的地方"}, states("我打算明年去大理住一阵", "王芳打算明年去大理住一阵", "大理")),
	self(roomWang, "王芳", "zh", [2]string{"我家的狗叫什么？", "狗的名字"}, states("我家的狗叫豆包", "王芳家的狗叫豆包", "豆包")),
	self(roomWang, "王芳", "zh", [2]string{"我希望你怎么回答？", "我对回答的顺序有什么偏好"}, prefer("我喜欢先看结论再看理由的回答", "王芳喜欢先看结论再看理由的回答", "先看结论")),
	self(roomWang, "王芳", "zh", [2]string{"我哪个老同事去做芯片了？", "做芯片的同事叫什么"}, states("我以前的同事范建国现在做芯片", "王芳以前的同事范建国现在做芯片", "范建国")),
	self(roomWang, "王芳", "zh", [2]string{"我想调到哪个分部？", "我申请调动的想法"}, states("我想申请调到深圳分部", "王芳想申请调到深圳分部", "深圳分部")),
	self(roomWang, "王芳", "zh", [2]string{"我在学什么语言？", "我每天学的外语"}, states("我在学法语，每天半小时", "王芳在学法语，每天半小时", "法语")),
	self(roomWang, "王芳", "zh", [2]string{"我是哪天入职的？", "我的入职日期"}, states("我的入职日期是2021年6月15日", "王芳的入职日期是2021年6月15日", "2021年6月15日")),
}
