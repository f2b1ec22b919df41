//! What the demo's tasks are called.

/// Names and kinds. Wide characters are on purpose: many a scheduler's names have them.
const JOBS: [(&str, &str); 40] = [
    ("数据同步任务", "data_sync"),
    ("sync orders to warehouse", "data_sync"),
    ("报表生成任务", "report_gen"),
    ("daily revenue report", "report_gen"),
    ("数据清理任务", "cleanup"),
    ("purge expired sessions", "cleanup"),
    ("send invoice reminders", "mail"),
    ("rebuild search index", "search"),
    ("订单对账", "reconcile"),
    ("reconcile payments", "reconcile"),
    ("thumbnails for new products", "media"),
    ("refresh exchange rates", "data_sync"),
    ("库存盘点", "inventory"),
    ("restock forecast", "inventory"),
    ("export GDPR requests", "export"),
    ("archive audit log", "cleanup"),
    ("用户画像更新", "analytics"),
    ("churn prediction", "analytics"),
    ("vacuum event partitions", "maintenance"),
    ("rotate API keys", "maintenance"),
    ("日志归档", "cleanup"),
    ("import supplier catalogue", "import"),
    ("price update", "import"),
    ("push notifications", "mail"),
    ("缓存预热", "maintenance"),
    ("warm product cache", "maintenance"),
    ("fraud score", "analytics"),
    ("newsletter", "mail"),
    ("备份校验", "backup"),
    ("verify backups", "backup"),
    ("close the day's books", "billing"),
    ("billing run", "billing"),
    ("积分结算", "billing"),
    ("sitemap", "search"),
    ("geocode addresses", "import"),
    ("dedupe customers", "analytics"),
    ("短信发送队列", "mail"),
    ("currency hedging report", "report_gen"),
    ("webhook retries", "mail"),
    ("thaw cold storage", "backup"),
];

/// Where the same job runs again.
const REGIONS: [&str; 8] = ["eu", "us", "cn", "in", "br", "jp", "za", "au"];

/// The name and the kind of the n-th task. No two have one name.
pub(super) fn job(n: usize) -> (String, &'static str) {
    let (name, kind) = JOBS.get(n % JOBS.len()).copied().unwrap_or_default();
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

    use super::job;

    #[test]
    fn no_two_tasks_have_one_name() {
        let names: BTreeSet<String> = (0..2_000).map(|n| job(n).0).collect();
        assert_eq!(names.len(), 2_000);
        assert_eq!(job(0).0, "数据同步任务");
        assert_eq!(job(41), ("sync orders to warehouse (eu)".to_owned(), "data_sync"));
    }
}
