//! Programs of others: the one on an interface, and captures that run.

use std::io;

use aya::programs::{ProgramError, loaded_links, loaded_programs};

use tscap_base::kernel_files::{KernelFiles, numbered};
use tscap_host::process;
use tscap_network::netdev::{AttachedMode, AttachedXdp};

/// An XDP program that is attached, as far as this process may look: that takes
/// CAP_SYS_ADMIN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachedProgram {
    /// Its name.
    pub name: Option<String>,
    /// The `bpf_link` that holds it there, if one does.
    pub link_id: Option<u32>,
    /// The processes that hold that link, by number and name.
    pub holders: Vec<(u32, String)>,
}

impl AttachedProgram {
    /// Looks for it among the kernel's programs and links.
    pub fn of(xdp: &AttachedXdp) -> Self {
        let is_it = |id: u32| xdp.program_ids.contains(&id);
        let mut programs = loaded_programs().filter_map(Result::ok);
        let mut links = loaded_links().filter_map(Result::ok);
        let program = programs.find(|program| is_it(program.id()));
        let link_id = links.find(|link| is_it(link.program_id()));
        let link_id = link_id.map(|link| link.id());
        let holders = link_id.map(|id| holders(&KernelFiles::live(), id));
        Self {
            name: program.and_then(|it| it.name_as_str().map(str::to_owned)),
            link_id,
            holders: holders.unwrap_or_default(),
        }
    }

    /// The command that takes it off `interface`, where it runs in `mode`. What a link
    /// holds no `ip link` takes off.
    pub fn command(&self, interface: &str, mode: AttachedMode) -> String {
        let off = |mode| format!("ip link set dev {interface} {mode} off");
        match (self.link_id, mode) {
            (Some(id), _) => format!("bpftool link detach id {id}"),
            (None, AttachedMode::Native) => off("xdpdrv"),
            (None, AttachedMode::Generic) => off("xdpgeneric"),
            (None, AttachedMode::Offloaded) => off("xdpoffload"),
            (None, AttachedMode::Multi) => format!("{}; {}", off("xdpdrv"), off("xdpgeneric")),
        }
    }

    /// What takes it off, in a sentence.
    pub fn removal(&self, interface: &str, mode: AttachedMode) -> String {
        let command = self.command(interface, mode);
        let holders = self.holders.iter();
        let holders: Vec<_> = holders
            .map(|(pid, name)| format!("{pid} ({name})"))
            .collect();
        let held = match holders.as_slice() {
            [] => return format!("take it off: {command}"),
            [one] => format!("process {one} holds it"),
            _ => format!("processes {} hold it", holders.join(", ")),
        };
        format!("{held}: end that, or: {command}")
    }
}

/// The processes that have a descriptor of `bpf_link` number `id`, as far as this process
/// may look (proc_pid_fdinfo(5)).
fn holders(files: &KernelFiles, id: u32) -> Vec<(u32, String)> {
    let mut holders = Vec::new();
    for pid in numbered(&files.proc(""), "").unwrap_or_default() {
        let infos = files.proc(format!("{pid}/fdinfo"));
        // Processes and descriptors come and go meanwhile.
        let fds = numbered(&infos, "").unwrap_or_default().into_iter();
        let mut texts =
            fds.filter_map(|fd| std::fs::read_to_string(infos.join(fd.to_string())).ok());
        if texts.any(|text| link_of(&text) == Some(id)) {
            let name = process::name(files, pid).ok().flatten();
            holders.push((pid, name.unwrap_or_default()));
        }
    }
    holders
}

/// The number of the `bpf_link` that a descriptor is of (`bpf_link_show_fdinfo`).
fn link_of(fdinfo: &str) -> Option<u32> {
    let id = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("link_id:"));
    id?.trim().parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_it_decides_what_takes_it_off() {
        let mut occupant = AttachedProgram::default();
        let said = |occupant: &AttachedProgram, mode| occupant.removal("rx0", mode);
        for (mode, flag) in [
            (AttachedMode::Native, "xdpdrv"),
            (AttachedMode::Generic, "xdpgeneric"),
            (AttachedMode::Offloaded, "xdpoffload"),
        ] {
            let command = format!("take it off: ip link set dev rx0 {flag} off");
            assert_eq!(said(&occupant, mode), command);
        }
        occupant.link_id = Some(12);
        let pinned = "take it off: bpftool link detach id 12";
        assert_eq!(said(&occupant, AttachedMode::Native), pinned);
        occupant.holders = vec![(4711, "tscap".into())];
        assert_eq!(
            said(&occupant, AttachedMode::Generic),
            "process 4711 (tscap) holds it: end that, or: bpftool link detach id 12"
        );
    }

    #[test]
    fn a_link_is_known_by_its_descriptor() {
        let link = "pos:\t0\nflags:\t02000002\nlink_type:\txdp\nlink_id:\t12\nprog_id:\t3\n";
        assert_eq!(link_of(link), Some(12));
        assert_eq!(link_of("pos:\t0\nprog_type:\t6\nprog_id:\t12\n"), None);
    }
}
