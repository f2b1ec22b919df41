use crate::Language;

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
pub(super) fn job(n: usize, language: Language) -> (String, &'static str) {
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

    use super::job;
    use crate::Language;

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
