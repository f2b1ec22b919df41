use super::super::orders::Orders;
pub(super) async fn run(_orders: &Orders, quit: impl Future<Output = ()>) -> Result<(), String> {
    quit.await;
    Ok(())
}
