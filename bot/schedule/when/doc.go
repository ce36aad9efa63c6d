// Package when reads phrases for times in Chinese and English, and computes when something is due next. [Parse] reads a
// phrase at the beginning or the end of a text, [Spec] is its meaning, [Quiet] a stretch of each day.
//
// Package memory/dates is the grammar of dates: it reads the days of appointments and the numbers of this package. Times of
// the day, distances ("in two hours") and repetitions are read here. Memory has no use for them: there a date is whole days,
// found anywhere in a text and mostly past. The expressions are rules.tsv, by name.
//
// A parser reads a text by these expressions: times of the day in clock.go, days in day.go, distances and repetitions in the files of these names.
// A phrase is the parts that were read, and computes the Spec. part.go reads parts in a row, and sides.go those at the end of the text.
//
// # Decisions
//
//   - A day without a time means 09:00. Noon is 12:00, afternoon 15:00, dusk 18:00, evening and night 20:00. Today without a
//     time means the first of 09:00, 15:00 and 20:00 that is not past.
//   - A time without a day is the next such time. Without a part of the day, hours from 1 to 11 are those of a clock's face.
//     At 14:00, "3点" is 15:00 today and "9点" is 21:00 today. At 22:00, "9点" is 09:00 tomorrow. Hours from 1 to 5 on another
//     day are in the afternoon. Before 06:00 "3点" may be 03:00 today. "09:00", "0点" and "15:30" are exact, and 12 is noon.
//   - A part of the day and an hour that can't be in it are refused: "早上15点", "evening at 8 am". "晚上09:30" is 21:30.
//   - Hours after midnight belong to the evening before: "今晚12点" and "tonight at 1" are tomorrow, "凌晨1点" and "1 am" are not.
//   - A distance in days, weeks, months or years keeps the time of the day, unless one follows.
//   - A weekday, a day without its month and a date without its year are the next ones. Any other past time is [ErrPast].
//     Weeks begin on Monday, and "next Friday" is that of the next week, as in memory.
//   - A repetition by hours, minutes or seconds counts from now. One by days, weeks, months or years follows the calendar.
//     Workdays are Monday to Friday: the adjusted working days of public holidays are unknown here.
//   - "每周" is the weekday of today, and "每月" its day. "每隔一天" is every second day, "每隔两天" too.
//   - Quarters count from the month of today, so that days within them are unreadable.
//   - Day 31 of each month is its last day. Days 29 and 30, and day 31 in a cron expression, skip months without them.
//   - A time is read to its end, or the phrase is refused: "9点到10点", "every day except Sunday", "每天两次", "周五之前", "by Friday",
//     "每天9点，从下周一开始". rules.tsv has the words of times and those that join them. A run of them behind a time belongs to it.
//     Behind a blank, words of a time that are joined to a text are text: "8点50 9点的会".
//   - A time that depends on an event is refused behind a day without an hour: "明天会后 写纪要", "tomorrow before the standup".
//   - The time may be at the end of the text: "call mom tomorrow at 5 pm", "喝水 10分钟后". A time of the day there completes a day at the
//     beginning: "tomorrow call mom at 5 pm". Two days are refused. Behind "for", "about" and 的 a time is text.
//   - "5m tea" counts from now. "明天这个时候" is the time that it is, and "下周今天" the weekday of today.
//   - A repetition may have several times of a day with the same minutes: "每天8点和20点".
//   - Days of the lunar calendar are unknown, and festivals of the solar one have their dates: "元旦", "christmas eve". Working days are Monday
//     to Friday here too: "三个工作日后". Behind a month or a year without a day, text needs a blank.
//   - A time in the gap of a change to summer time is the end of the gap. A time that a change back repeats is the
//     first of the two. Each is due once.
//   - Cron expressions have five fields, with names, lists, ranges, steps, L for the last day of a month, 5L for its last
//     Friday and 5#2 for its second. If neither day field begins with *, one of them has to match.
//
// Package gronx is not used for cron expressions: version 1.20.4 skips times in a gap and refuses FRI-MON. It accepts 5,99
// at minute 5 only, and an expression without a next time costs it 13 ms.
package when
