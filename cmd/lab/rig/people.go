package rig

// The simulator's own application.
const (
	RobotCode = "dingsimapp0001"
	AppSecret = "sim-secret"
)

// Person is a member of the story.
type Person struct{ ID, Name string }

// The members of the story.
var (
	Zhang = Person{"u-zhangwei", "张伟"}
	Li    = Person{"u-lina", "李娜"}
	Alex  = Person{"u-alex", "Alex"}
)

// Utterance is one message of the story.
type Utterance struct {
	Speaker Person
	Text    string
}

// LongMessages fill the context quickly, without a fact worth saving.
var LongMessages = []Utterance{
	{Zhang, "压测结果贴一下：三台八核机器，单机 1200 TPS 时平均响应 38 毫秒，99 线 145 毫秒，错误率 0.02%。瓶颈在风控规则加载，每次刷新会卡 300 毫秒左右；数据库连接池从 50 调到 80 以后，等待明显少了。再往上加压到 1500 TPS，99 线涨到 410 毫秒，主要耗在网关到风控之间的序列化上。和上个版本比，同样压力下 CPU 低了大约 12 个点，内存持平，没有看到泄漏的迹象，完整报告放在群文件里了，大家有空翻一翻。" +
		"\n\n" + "代码走查的意见汇总：一是签名校验里有一段重复代码，抽成公共函数；二是日志里的卡号要统一打码，现在有一处只打了中间四位；三是超时时间写死在代码里，挪到配置中心；四是两个单元测试依赖执行顺序，单独跑会失败；五是错误码表里有三个没有中文说明。整体结构没有大问题，改动量大概半天，改完以后我再看一遍，争取今天合进主干，明天一早出测试包给大家验证。" +
		"\n\n" + "数据迁移演练跑完了：全量 1,860 万条流水，导出 11 分钟，导入 26 分钟，校验 9 分钟，总数和金额都对得上，抽查一千条明细没有差异。增量同步延迟平均 1.2 秒，高峰期到过 6 秒，之后自己追平。索引重建比预想的慢，多花了八分钟，已经改成导入之后再建。回切脚本也走了一遍，从执行到流量切回用了三分四十秒，比上次快了将近一半，演练记录整理好以后发到群里。"},
	{Li, "昨天联调的进展：收单、退款、查询三条链路都通了，用例跑了 146 条，过了 141 条。剩下五条里，两条是测试账号余额不够，一条是回调地址写错，另外两条是退款金额精度的问题，沙箱返回的是分，我们按元解析，今天已经修掉，等下午重跑。渠道那边的同学说沙箱每天凌晨两点到四点维护，这段时间的失败可以直接忽略，不用再开单子了，跑完我会把结果更新到看板上。" +
		"\n\n" + "值班情况同步：本周一共处理告警 27 条，其中 19 条是磁盘水位，都在日志盘，已经把保留天数从十四天缩到七天；5 条是证书快过期的提醒，新证书昨天换好了；剩下 3 条是网络抖动，机房说在换交换机，影响不到一分钟。晚上的告警比上周少了一半，主要是把两个太敏感的阈值放宽了。下周轮到后端组值班，交接文档写在知识库首页，排班表也一起更新了。" +
		"\n\n" + "前端这边的改动：收银台首屏从 1.9 秒降到 1.1 秒，主要是把银行列表改成按需加载，图片换成新格式。银行卡输入框做了分段显示，粘贴带空格的卡号也能识别。深色模式下有两处对比度不够，设计已经给了新色值。安卓低端机上偶尔出现键盘遮挡，换了滚动方式以后连续测了五十次没有复现。小程序端的包体积减了 320 KB，下个版本还能再拆一块出去，文案这周内会再过一遍。"},
	{Alex, "Quick summary of the gateway logs from last night: 3,412 timeouts between 02:10 and 02:25, all of them against the sandbox acquirer, none in our own pods. Retries absorbed every one, the queue peaked at 870 and drained in four minutes. p50 stayed at 21 ms, p99 went from 130 to 196 ms. Memory was flat at 410 MB a pod, no restarts, no throttling. The new dashboards show queue depth and retry counts side by side, so spikes like this one are much easier to read than before." +
		"\n\n" + "Notes from the call with the acquirer: they will ship the new SDK build with TLS 1.3 on Thursday, the old endpoint stays up for thirty days, and the callback format gets two optional fields that we can ignore for now. Their sandbox limits go from 50 to 200 requests a second next week. They also asked us to send the trace id in every request header, which we already do in the new client. I put the slides and the recording in the shared folder, nothing else is open on their side." +
		"\n\n" + "Status of the cost review: the three biggest items are log storage, cross-zone traffic and idle test clusters. Moving logs older than a week to cold storage saves about 38 percent of that bill. Pinning the cache to one zone cuts the traffic by a third, with no change in latency that we could measure. Test clusters now shut down at night and over the weekend, which the teams hardly noticed. All three changes are live since Monday and the first numbers look the way we hoped."},
}

// ShortMessages fill the context in small steps near the marks.
var ShortMessages = []Utterance{
	{Zhang, "安全扫描的结果出来了：高危零个，中危两个，低危九个。中危一个是依赖库版本偏旧，升级补丁版本即可；另一个是管理后台的会话时间太长，改成三十分钟。低危大多是响应头缺失，网关统一加上就行。渗透测试做了两天，重点试了重放、越权和金额篡改，都被拦下来了，报告里给了一些加固建议，比如把回调的来源地址也校验一遍。整改计划写在看板上，按优先级排好了顺序。"},
	{Li, "用户反馈整理：这两周一共收到 83 条，其中 31 条说付款结果页跳转慢，22 条希望账单能按月导出，14 条是发票抬头填写不方便，其余比较零散。跳转慢和渠道的异步通知有关，我们加了轮询兜底以后，平均等待从四秒降到一秒半。账单导出放进了下个迭代，原型图已经画好。发票那块要和财务的同学一起改流程，先把表单简化，减少三个必填项，客服的话术也一起更新。"},
	{Alex, "Test environment refresh: all six services run the release candidate now, the database was restored from an anonymised copy of last week, and the mock bank answers with realistic delays between 80 and 400 ms. Two flaky end-to-end cases were rewritten to wait for events instead of sleeping, the suite went from 31 to 19 minutes. The nightly build has been green for five days in a row. Please use the new host names in your local settings, the old aliases go away with the next refresh."},
	{Zhang, "接口文档同步：新增的分账接口有两个必传字段，商户号和分账批次；回调里多了渠道流水，老版本可以忽略。错误码统一成五位，前两位是模块，后三位是原因，对照表放在文档附录。示例代码补了三种语言，签名那一节重写过，把容易踩的坑单独列了出来，比如空值不参与签名、时间戳用秒。沙箱已经按新文档部署，商户那边反馈读起来比以前清楚，少了很多来回确认的电话。"},
	{Li, "测试进度：回归用例一共 612 条，跑完 540 条，通过率 98.1%，没通过的十条里，六条是环境问题，三条是文案没更新，一条是真缺陷，已经修好等复测。兼容性测了十七款手机，老系统上有一处按钮错位，改了布局就好。性能用例排在今天夜里跑，避开白天的联调。自动化脚本顺手清理了一遍，删掉四十多条重复的，整套时间从两小时缩到七十分钟。"},
	{Alex, "Observability update: every payment now carries one trace from the checkout page to the acquirer and back, sampling is at five percent in production and full in staging. We found two places where the trace was lost, both in message handlers, and fixed them. Alert texts now begin with the customer impact and link to the right dashboard. The number of noisy pages went from eleven to three a week, and the on-call handbook got a short chapter with examples."},
	{Zhang, "容量评估：按去年大促的峰值乘一点五来算，网关要十二台，风控八台，数据库主库的写入还有四成余量，从库读压力最大的是对账查询，已经挪到单独的只读实例。消息队列分区从十六个扩到三十二个，消费者跟着加了一倍。缓存命中率保持 97% 上下，热点商户单独做了本地缓存。扩容脚本演练过两遍，从申请机器到接流量十四分钟，缩容也走了一遍，没有发现残留。"},
	{Li, "运营活动的配合事项：满减活动的规则配置已经录入，测试环境验证了三档金额，叠加优惠券的顺序和预期一致。海报上的二维码换成了新的短链，扫码打开的速度快了一截。客服那边培训了两场，常见问题整理成了二十条，退款时效的说法统一成一到三个工作日。活动期间每小时出一次数据，看板加了实时成交和失败原因分布，运营的同学可以自己筛选渠道和地区。"},
	{Alex, "Cleanup report: forty-one feature flags are gone, the oldest one was from three years back. Dead code behind them came to about nine thousand lines, and build time fell by twelve percent. Two small services that only forwarded calls were merged into the gateway, which removes one network hop from every refund. Nothing changed for callers; contract tests ran against both versions for a week and showed no difference, so the old deployments are switched off now."},
}
