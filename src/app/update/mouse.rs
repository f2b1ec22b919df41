use crate::app::App;
use crate::app::message::{Spot, Update};
use crate::app::panes::Pane;

impl App {
    pub(super) fn click(&mut self, spot: &Spot) -> Update {
        if self.prompt.is_some() || self.dialog.is_some() || self.is_too_small() {
            return Update::none();
        }
        let notice = self.notice.take_if(|notice| notice.seen || notice.ticks.is_some());
        let mut update = match *spot {
            Spot::Key(action) if self.pages.is_empty() => self.act(action),
            Spot::Key(action) => self.page_key(Some(action)),
            Spot::Row(pane, at) if self.is_open_to(pane) => self.click_row(pane, at),
            Spot::Heading(pane, column) if self.is_open_to(pane) => {
                self.focus = pane;
                self.sort_by(pane, column)
            }
            Spot::Row(..) | Spot::Heading(..) => Update::none(),
        };
        update.redraw |= notice.is_some();
        update
    }

    fn is_open_to(&self, pane: Pane) -> bool {
        self.pages.is_empty() && self.visible_panes().contains(&pane)
    }

    fn click_row(&mut self, pane: Pane, at: usize) -> Update {
        self.focus = pane;
        self.with_pane(pane, |state, context| {
            if at < state.rows.len() {
                state.select(context, at);
            }
        });
        Update::redraw()
    }

    pub(super) fn wheel(&mut self, pane: Option<Pane>, by: isize) -> Update {
        if self.dialog.is_some() {
            return self.scroll_dialog(by);
        }
        if !self.pages.is_empty() {
            return self.scroll_page(by);
        }
        match pane {
            Some(pane) if self.prompt.is_none() && self.visible_panes().contains(&pane) => {
                self.focus = pane;
                self.step(by)
            }
            _ => Update::none(),
        }
    }
}
