//! Programs attached by a filter of clsact, which nobody but tscap removes.

use std::io;
use std::os::fd::BorrowedFd;

use super::setting::{ATTACHED, NONE, UNUSED};
use super::{Change, ChangeError, InterfaceId, JournalError, Planned, Setting, SettingsGuard};
use tscap_network::clsact::{Clsact, ClsactError, Filters, Side};
use tscap_network::netdev::Link;

/// Why a program could not be attached by a filter.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The namespace of the interface can't be identified.
    #[error("cannot identify this network namespace")]
    Namespace(#[source] io::Error),
    /// What is there could not be read.
    #[error(transparent)]
    Look(#[from] ChangeError),
    /// The filter can't be journalled, and was not made.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The filter could not be made.
    #[error(transparent)]
    Attach(#[from] ClsactError),
}

impl SettingsGuard {
    /// Attaches `program` to a side of an interface of this thread's network namespace, by
    /// a filter called `name` that is journalled before. The guard removes what
    /// [`Clsact`] could not.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub fn attach_filter(
        &mut self,
        program: BorrowedFd<'_>,
        link: &Link,
        side: Side,
        name: &str,
    ) -> Result<Clsact, FilterError> {
        let interface = InterfaceId::here(link).map_err(FilterError::Namespace)?;
        let filters = Filters::of(link.index)?;
        let filter = filters.plan(program, side)?;
        let qdisc = self.plan_qdisc(&interface)?;
        let owns_qdisc = qdisc.is_some();
        let setting = Setting::ClsactFilter(filter.clone());
        let attached = Change::plan(self.files(), &interface, setting, ATTACHED.into())?;
        self.journal_ahead(qdisc.into_iter().chain(attached.change()).collect())?;
        Ok(Clsact::attach(filters, filter, program, name, owns_qdisc)?)
    }

    /// The change of the discipline, if it is tscap's to remove: there is none yet, or it was
    /// made for another filter of tscap. The last one then removes it.
    fn plan_qdisc(&mut self, interface: &InterfaceId) -> Result<Option<Change>, FilterError> {
        let setting = Setting::ClsactQdisc;
        let planned = Change::plan(self.files(), interface, setting.clone(), UNUSED.into())?;
        let change = Change {
            interface: interface.clone(),
            path: setting.path(self.files(), &interface.name),
            setting,
            old: NONE.into(),
            new: UNUSED.into(),
        };
        if planned == Planned::Change(change.clone()) {
            return Ok(Some(change));
        }
        Ok(self.is_made(&change)?.then_some(change))
    }
}
