//! What is said of interfaces that were not named and can't be captured on.

use std::collections::BTreeMap;

use super::event::Reporter;
use super::selection::Selected;
use tscap_base::failure::Failure;
use tscap_live::Scope;

/// What was said last of each, by namespace and number: the kernel tells of each change of an
/// interface, and the reason is mostly the same as before.
#[derive(Debug, Default)]
pub(super) struct LeftOut(BTreeMap<(usize, u32), String>);

impl LeftOut {
    /// Warns that an interface is left out, unless the same was said of it.
    pub fn say(
        &mut self,
        selected: &Selected,
        scope: &Scope,
        failure: &Failure,
        reporter: &mut Reporter<'_>,
    ) {
        if let Some(text) = self.remember(selected, scope, failure) {
            reporter.warning(&text);
        }
    }

    /// Gives what is to be said of an interface that is left out, unless the same was said.
    pub fn remember(
        &mut self,
        selected: &Selected,
        scope: &Scope,
        failure: &Failure,
    ) -> Option<String> {
        let name = scope.name_of(&selected.link.name);
        let text = format!("{name} is left out: {failure}");
        let key = (selected.scope, selected.link.index);
        let before = self.0.insert(key, text.clone());
        (before.as_ref() != Some(&text)).then_some(text)
    }
}
