pub(super) mod sparkline;
pub(super) mod table;
