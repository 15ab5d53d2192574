//! What the sightings of a key say.

use super::window::Group;
use crate::schema::Account;
use crate::sighting::{MOST_EXITS, SeenAt};

/// What is known of where a packet was when its window ended, if it was not seen at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Circumstances {
    /// What an entry without an exit is.
    pub inside: Inside,
    /// What an exit without an entry is.
    pub origin: Origin,
}

/// What an entry without an exit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// Its window has passed.
    Lost,
    /// The end came before that.
    Pending,
    /// The clock was set before that.
    Ambiguous,
}

/// What an exit without an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Of what comes from inside.
    Inside,
    /// It may have entered before the start.
    Early,
    /// It may have entered before the clock was set.
    Ambiguous,
    /// It may be one that was not remembered at the entry.
    Untracked,
}

/// The account of each exit.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts(pub [Account; MOST_EXITS]);

impl Accounts {
    /// Accounts for a group, and gives whether it was matched at each exit.
    #[inline]
    pub fn judge(&mut self, group: &Group, circumstances: Circumstances) -> [bool; MOST_EXITS] {
        let mut matched = [false; MOST_EXITS];
        for (exit, account) in self.0.iter_mut().enumerate() {
            let (ins, outs) = (u64::from(group.ins), u64::from(group.outs[exit]));
            account.entered += ins;
            account.left += outs;
            matched[exit] = (ins, outs) == (1, 1) && group.left[exit] >= group.entered;
            if matched[exit] {
                account.matched += 1;
            } else if ins.min(outs) == 0 || ins.max(outs) == 1 {
                // Nothing that they could be confused with.
                *match circumstances.inside {
                    Inside::Lost => &mut account.lost_inside,
                    Inside::Pending => &mut account.pending,
                    Inside::Ambiguous => &mut account.ambiguous_in,
                } += ins;
                *match circumstances.origin {
                    Origin::Early => &mut account.early,
                    Origin::Ambiguous => &mut account.ambiguous_out,
                    Origin::Untracked if ins == 0 => &mut account.untracked_out,
                    Origin::Inside | Origin::Untracked => &mut account.originated,
                } += outs;
            } else {
                account.ambiguous_in += ins;
                account.ambiguous_out += outs;
            }
        }
        matched
    }

    /// Accounts for a sighting of which nothing could be remembered.
    pub fn untracked(&mut self, at: SeenAt) {
        match at {
            SeenAt::Entry => self.0.iter_mut().for_each(|account| {
                account.entered += 1;
                account.untracked_in += 1;
            }),
            SeenAt::Exit(exit) => {
                self.0[exit].left += 1;
                self.0[exit].untracked_out += 1;
            }
        }
    }

    /// Accounts for a sighting that came when its packet may have been judged.
    pub fn late(&mut self, at: SeenAt) {
        match at {
            SeenAt::Entry => self.0.iter_mut().for_each(|account| {
                account.entered += 1;
                account.ambiguous_in += 1;
            }),
            SeenAt::Exit(exit) => {
                self.0[exit].left += 1;
                self.0[exit].ambiguous_out += 1;
            }
        }
    }
}
