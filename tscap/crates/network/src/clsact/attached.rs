//! A filter for as long as it is needed.

use std::os::fd::BorrowedFd;

use super::{ClsactError, Filter, Filters};

/// A program attached by a filter, until it is dropped.
#[derive(Debug)]
pub struct Clsact {
    filters: Filters,
    filter: Filter,
    /// The discipline goes too, once nobody uses it.
    owns_qdisc: bool,
}

impl Clsact {
    /// Attaches `program` where [`Filters::plan`] says. With `owns_qdisc` the discipline goes
    /// with it, unless somebody else uses it.
    ///
    /// # Errors
    /// See [`ClsactError`].
    pub fn attach(
        filters: Filters,
        filter: Filter,
        program: BorrowedFd<'_>,
        name: &str,
        owns_qdisc: bool,
    ) -> Result<Self, ClsactError> {
        filters.add(&filter, program, name)?;
        Ok(Self {
            filters,
            filter,
            owns_qdisc,
        })
    }

    /// Its place.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Whether it is attached still: the kernel removes it with the interface, and when that
    /// moves to another network namespace (`dev_shutdown`, net/sched/sch_generic.c).
    ///
    /// # Errors
    /// See [`ClsactError`].
    pub fn is_attached(&self) -> Result<bool, ClsactError> {
        self.filters.has(&self.filter)
    }

    /// Detaches; again does nothing. The program may still run on a CPU when this returns.
    ///
    /// # Errors
    /// See [`ClsactError`]; that the interface is gone is none.
    pub fn detach(&self) -> Result<(), ClsactError> {
        self.filters.remove(&self.filter)?;
        if self.owns_qdisc {
            self.filters.remove_unused_qdisc()?;
        }
        Ok(())
    }
}

impl Drop for Clsact {
    fn drop(&mut self) {
        // What stays is in the journal.
        let _ = self.detach();
    }
}
