//! Programs of others: the one on an interface, and captures that run.

use std::io;

use aya::programs::{ProgramError, loaded_links, loaded_programs};

use crate::sys::netdev::AttachedXdp;

/// An XDP program that is attached, as far as this process may look: that takes
/// CAP_SYS_ADMIN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupant {
    /// Its name.
    pub name: Option<String>,
    /// The `bpf_link` that holds it there, if one does.
    pub link_id: Option<u32>,
}

impl Occupant {
    /// Looks for it among the kernel's programs and links.
    pub fn of(xdp: &AttachedXdp) -> Self {
        let is_it = |id: u32| xdp.program_ids.contains(&id);
        let mut programs = loaded_programs().filter_map(Result::ok);
        let mut links = loaded_links().filter_map(Result::ok);
        let program = programs.find(|program| is_it(program.id()));
        Self {
            name: program.and_then(|it| it.name_as_str().map(str::to_owned)),
            link_id: links
                .find(|link| is_it(link.program_id()))
                .map(|it| it.id()),
        }
    }
}

/// Bytes that the kernel keeps of a program's name (`BPF_OBJ_NAME_LEN`).
const NAME_MAX: usize = 15;

/// Whether a program of this name is loaded anywhere on this machine.
///
/// # Errors
/// Without CAP_SYS_ADMIN.
pub(super) fn is_loaded(name: &str) -> Result<bool, ProgramError> {
    let name = &name[..name.len().min(NAME_MAX)];
    let mut refusal = None;
    for program in loaded_programs() {
        match program {
            Ok(program) if program.name_as_str() == Some(name) => return Ok(true),
            Ok(_) => {}
            // One may go away meanwhile.
            Err(error) => refusal = Some(error),
        }
    }
    match refusal {
        Some(error) if is_permission(&error) => Err(error),
        _ => Ok(false),
    }
}

fn is_permission(error: &ProgramError) -> bool {
    matches!(error, ProgramError::SyscallError(error)
        if error.io_error.kind() == io::ErrorKind::PermissionDenied)
}
