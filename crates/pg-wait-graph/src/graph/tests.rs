mod answers;
mod lists;
mod properties;
mod reference;
mod scenarios;
mod script;
