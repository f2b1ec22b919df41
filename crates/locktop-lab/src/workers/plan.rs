//! Which tasks there are and how each ends: generated from a seed, the same each time.

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use crate::Language;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskEnd {
    Well,
    /// With an error, at the first attempt.
    Fails,
    /// Never: it has to be terminated.
    Hangs,
}

/// One task. Durations are in seconds, before scaling.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedTask {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    /// `None` for a task that is planned by hand.
    pub(crate) cron: Option<&'static str>,
    pub(crate) priority: i32,
    pub(crate) work: f64,
    /// Past it the task is slow.
    pub(crate) timeout: f64,
    pub(crate) every: f64,
    pub(crate) first: f64,
    pub(crate) ends: TaskEnd,
}

/// Ten workers for a hundred tasks are busy for eight tenths of the time, or less, since the next execution is planned
/// from the end of the last one.
const WORKERS_A_TASK: f64 = 0.085;
const SHORTEST: f64 = 1.0;
const LONGEST: f64 = 600.0;
const SCHEDULES: [(Option<&str>, f64); 6] = [
    (Some("*/10 * * * *"), 600.0),
    (Some("*/15 * * * *"), 900.0),
    (Some("*/20 * * * *"), 1_200.0),
    (Some("*/30 * * * *"), 1_800.0),
    (Some("0 * * * *"), 3_600.0),
    (None, 1_500.0),
];
const PRIORITIES: [i32; 6] = [0, 0, 0, 1, 5, 10];

/// `hanging` makes one of thirty never end.
pub(super) fn planned_tasks(
    seed: u64,
    count: usize,
    (hanging, language): (bool, Language),
) -> Vec<PlannedTask> {
    let mut random = Rng::with_seed(seed);
    let mut tasks: Vec<PlannedTask> =
        (0..count).map(|n| planned_task(&mut random, (n, language), hanging && n % 30 == 7)).collect();
    // The schedules are stretched until they need this number of workers for each task, whatever was drawn.
    let asked: f64 = tasks.iter().map(|task| task.work / task.every).sum();
    let stretch = asked / (WORKERS_A_TASK * as_number(count));
    for task in &mut tasks {
        task.every *= stretch;
        task.first *= stretch;
    }
    tasks
}

#[expect(clippy::cast_precision_loss, reason = "there are not so many tasks")]
fn as_number(count: usize) -> f64 {
    count as f64
}

fn planned_task(random: &mut Rng, (n, language): (usize, Language), hangs: bool) -> PlannedTask {
    let (name, kind) = job(n, language);
    // As many between 1 s and 10 s as between 1 min and 10 min: there are many short ones, and the long ones make the load.
    let work = SHORTEST * (LONGEST / SHORTEST).powf(random.f64());
    let (cron, every) = random.choice(SCHEDULES).unwrap_or_default();
    let slack = 1.5 + 1.5 * random.f64();
    // Some got their timeout when there was less to do.
    let outgrown = random.u64(..12) == 0 && work > 90.0;
    let timeout = if outgrown { work * 0.5 } else { (work * slack).max(120.0) };
    let fails = random.u64(..16) == 0;
    // A third is due at once; the others follow in turn.
    let first = if random.u64(..3) == 0 { 0.0 } else { every * random.f64() };
    let priority = random.choice(PRIORITIES).unwrap_or_default();
    let ends = match (hangs, fails) {
        (true, _) => TaskEnd::Hangs,
        (false, true) => TaskEnd::Fails,
        (false, false) => TaskEnd::Well,
    };
    PlannedTask { name, kind, cron, priority, work, timeout, every, first, ends }
}

const JOBS: [((&str, &str), &str); 40] = [
    (("sync orders to warehouse", "订单同步到数仓"), "data_sync"),
    (("daily revenue report", "每日营收报表"), "report_gen"),
    (("purge expired sessions", "清理过期会话"), "cleanup"),
    (("send invoice reminders", "发送账单提醒"), "mail"),
    (("rebuild search index", "重建搜索索引"), "search"),
    (("reconcile payments", "支付对账"), "reconcile"),
    (("thumbnails for new products", "新品缩略图"), "media"),
    (("refresh exchange rates", "刷新汇率"), "data_sync"),
    (("count stock", "库存盘点"), "inventory"),
    (("restock forecast", "补货预测"), "inventory"),
    (("export GDPR requests", "导出隐私请求"), "export"),
    (("archive audit log", "归档审计日志"), "cleanup"),
    (("update user profiles", "用户画像更新"), "analytics"),
    (("churn prediction", "流失预测"), "analytics"),
    (("vacuum event partitions", "整理事件分区"), "maintenance"),
    (("rotate API keys", "轮换 API 密钥"), "maintenance"),
    (("archive application logs", "日志归档"), "cleanup"),
    (("import supplier catalogue", "导入供应商目录"), "import"),
    (("price update", "价格更新"), "import"),
    (("push notifications", "推送通知"), "mail"),
    (("warm product cache", "缓存预热"), "maintenance"),
    (("fraud score", "欺诈评分"), "analytics"),
    (("newsletter", "电子周报"), "mail"),
    (("verify backups", "备份校验"), "backup"),
    (("close the day's books", "日终结账"), "billing"),
    (("billing run", "批量出账"), "billing"),
    (("settle loyalty points", "积分结算"), "billing"),
    (("sitemap", "站点地图"), "search"),
    (("geocode addresses", "地址编码"), "import"),
    (("dedupe customers", "客户去重"), "analytics"),
    (("send text messages", "短信发送"), "mail"),
    (("currency hedging report", "外汇对冲报表"), "report_gen"),
    (("webhook retries", "重试回调"), "mail"),
    (("thaw cold storage", "解冻冷存储"), "backup"),
    (("sync customer data", "客户数据同步"), "data_sync"),
    (("weekly sales report", "每周销售报表"), "report_gen"),
    (("delete old uploads", "删除旧上传文件"), "cleanup"),
    (("match bank transfers", "银行流水对账"), "reconcile"),
    (("render product videos", "生成商品视频"), "media"),
    (("check stock alerts", "库存预警"), "inventory"),
];

const REGIONS: [&str; 8] = ["eu", "us", "cn", "in", "br", "jp", "za", "au"];

/// The name and the kind of the n-th task. Names are unique.
fn job(n: usize, language: Language) -> (String, &'static str) {
    let (names, kind) = JOBS.get(n % JOBS.len()).copied().unwrap_or_default();
    let name = language.of(names);
    let round = n / JOBS.len();
    if round == 0 {
        return (name.to_owned(), kind);
    }
    let region = REGIONS.get((round - 1) % REGIONS.len()).copied().unwrap_or_default();
    match (round - 1) / REGIONS.len() {
        0 => (format!("{name} ({region})"), kind),
        more => (format!("{name} ({region}-{})", more + 1), kind),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Language;

    #[test]
    fn a_seed_gives_the_same_tasks_each_time() {
        assert_eq!(
            planned_tasks(7, 100, (true, Language::English)),
            planned_tasks(7, 100, (true, Language::English))
        );
        assert_ne!(
            planned_tasks(7, 100, (false, Language::English)),
            planned_tasks(8, 100, (false, Language::English))
        );
    }

    #[test]
    fn they_take_from_a_second_to_ten_minutes() {
        for seed in 0..50 {
            let tasks = planned_tasks(seed, 100, (false, Language::English));
            assert!(tasks.iter().all(|task| (SHORTEST..=LONGEST).contains(&task.work)), "{seed}");
            assert!(tasks.iter().any(|task| task.work < 10.0), "{seed}");
            assert!(tasks.iter().any(|task| task.work > 300.0), "{seed}");
            assert!(tasks.iter().any(|task| task.first <= 0.0), "{seed}: some are due at once");
            assert!(tasks.iter().any(|task| task.ends == TaskEnd::Fails), "{seed}");
            assert!(tasks.iter().all(|task| task.ends != TaskEnd::Hangs), "{seed}");
        }
        assert!(
            planned_tasks(1, 100, (true, Language::English)).iter().any(|task| task.ends == TaskEnd::Hangs)
        );
    }

    #[test]
    fn ten_workers_have_enough_to_do_and_can_do_it() {
        for seed in 0..50 {
            let busy: f64 = planned_tasks(seed, 100, (false, Language::English))
                .iter()
                .map(|task| task.work / (task.every + task.work))
                .sum();
            assert!((4.5..8.5).contains(&busy), "{seed}: {busy} workers busy");
        }
    }

    #[test]
    fn no_two_tasks_have_one_name_and_english_ones_are_ascii() {
        for language in [Language::English, Language::Chinese] {
            let names: BTreeSet<String> = (0..2_000).map(|n| job(n, language).0).collect();
            assert_eq!(names.len(), 2_000);
            assert!(language == Language::Chinese || names.iter().all(|name| name.is_ascii()));
            assert!(language == Language::English || names.iter().all(|name| !name.is_ascii()));
        }
        assert_eq!(job(41, Language::English), ("daily revenue report (eu)".to_owned(), "report_gen"));
        assert_eq!(job(41, Language::Chinese), ("每日营收报表 (eu)".to_owned(), "report_gen"));
    }
}
