//! The recovery that goes on beside the workers.
use super::play::Shared;
use std::sync::Arc;
pub(super) async fn keep(_shared: Arc<Shared>) {}
