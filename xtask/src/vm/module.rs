//! The kernel module, built for a kernel of Debian's against its headers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::architecture::Architecture;
use super::packages::{Apt, run, unpacked};
use crate::paths;

/// Whose `linux-kbuild` has resolve_btfids, which that of 6.1 lacks.
const RESOLVES_BTFIDS: &str = "linux-headers-6.12-cloud-amd64";

/// Where the kernel's types are kept, if its headers have none.
const TYPES: &str = "types";

/// The headers of a kernel, unpacked.
pub struct Headers {
    architecture: Architecture,
    release: String,
    /// Where all that they depend on is, too.
    root: PathBuf,
}

/// Fetches the headers of the unpacked kernel `kernel`, which `apt` knows, and unpacks them under
/// `folder`. The programs that come with them are this machine's.
pub fn headers(
    architecture: Architecture,
    apt: &Apt,
    folder: &Path,
    kernel: &Path,
    release: &str,
) -> Result<Headers> {
    let own = Apt::default();
    let headers = apt.candidate(&format!("linux-headers-{release}"))?;
    let kbuild = ["linux-headers-", "linux-kbuild-"];
    let mut packages = headers.depends(&kbuild[..1])?;
    for program in headers.depends(&kbuild[1..])? {
        packages.push(own.candidate(program.name())?);
    }
    let resolves = own.behind(RESOLVES_BTFIDS)?.depends(&kbuild[1..])?;
    packages.extend(resolves);
    packages.dedup_by(|one, other| one.folder_name() == other.folder_name());
    let name = headers.folder_name();
    packages.push(headers);
    let in_root = format!("usr/src/linux-headers-{release}");
    let root = unpacked(folder, &name, &packages, |root| {
        if root.join(&in_root).join("vmlinux").exists() {
            return Ok(());
        }
        match architecture {
            Architecture::Amd64 => extract_types(kernel, release, &root.join(TYPES)),
            Architecture::Arm64 => find_types(kernel, release, &root.join(TYPES)),
        }
    })?;
    // It names the common headers where an installation would put them.
    let makefile = root.join(in_root).join("Makefile");
    let common = format!("include {}/usr/src", root.display());
    let text = fs::read_to_string(&makefile)
        .with_context(|| format!("cannot read {}", makefile.display()))?;
    fs::write(&makefile, text.replace("include /usr/src", &common))?;
    Ok(Headers {
        architecture,
        release: release.into(),
        root,
    })
}

/// Builds `tscap.ko` for that kernel, under `folder`.
pub fn build(folder: &Path, headers: &Headers) -> Result<PathBuf> {
    let Headers {
        architecture,
        release,
        root,
    } = headers;
    let work = folder.join(format!("module-{release}"));
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let kmod = paths::root().join("tscap-ebpf/kmod");
    for file in ["Kbuild", "Makefile", "tscap.c", "dkms.conf"] {
        let from = kmod.join(file);
        fs::copy(&from, work.join(file))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    // As DKMS does.
    let mut make = Command::new("bash");
    let arguments = architecture.make_arguments().join(" ");
    make.arg("-ec");
    make.arg(format!(
        "source ./dkms.conf; eval \"${{MAKE[0]}} {arguments}\""
    ));
    make.current_dir(&work).env("kernelver", release);
    let headers = root.join(format!("usr/src/linux-headers-{release}"));
    make.env("kernel_source_dir", headers);
    // What our Makefile can't know of headers that are not installed.
    make.env("BTF_BASE", root.join(TYPES));
    make.env("RESOLVE_BTFIDS", resolve_btfids(root)?);
    run("make", &mut make)?;
    Ok(work.join("tscap.ko"))
}

/// Builds the network interface of the checks of hardware stamps for that kernel, under
/// `folder`; `None` for kernels before 6.12, whose drivers have other functions.
pub fn build_nic(folder: &Path, headers: &Headers) -> Result<Option<PathBuf>> {
    let Headers {
        architecture,
        release,
        root,
    } = headers;
    if release.starts_with("6.1.") {
        return Ok(None);
    }
    let work = folder.join(format!("nic-{release}"));
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let sources = paths::root().join("tscap/tests/vm/nic_module");
    for file in ["Kbuild", "tscap_nic.c"] {
        let from = sources.join(file);
        fs::copy(&from, work.join(file))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let mut make = Command::new("make");
    make.arg("-C")
        .arg(root.join(format!("usr/src/linux-headers-{release}")));
    make.args(architecture.make_arguments());
    make.arg(format!("M={}", work.display())).arg("modules");
    run("make", &mut make)?;
    Ok(Some(work.join("tscap_nic.ko")))
}

fn resolve_btfids(root: &Path) -> Result<PathBuf> {
    for kbuild in fs::read_dir(root.join("usr/lib"))? {
        let tool = kbuild?
            .path()
            .join("tools/bpf/resolve_btfids/resolve_btfids");
        if tool.exists() {
            return Ok(tool);
        }
    }
    bail!("no resolve_btfids in {RESOLVES_BTFIDS}")
}

/// Writes the kernel's own types (its section .BTF), as a running one shows them
/// in /sys/kernel/btf/vmlinux.
fn extract_types(kernel: &Path, release: &str, types: &Path) -> Result<()> {
    let image = kernel.join(format!("boot/vmlinuz-{release}"));
    let image = fs::read(&image).with_context(|| format!("cannot read {}", image.display()))?;
    let payload = payload(&image).context("the kernel's image has no payload")?;
    let [packed, vmlinux, rest] = ["lz4", "vmlinux", "rest"].map(|it| types.with_extension(it));
    fs::write(&packed, payload).with_context(|| format!("cannot write {}", packed.display()))?;
    let mut unpack = Command::new("lz4");
    run(
        "lz4",
        unpack.args(["-d", "-q", "-f"]).arg(&packed).arg(&vmlinux),
    )?;
    let mut dump = Command::new("objcopy");
    dump.arg(format!("--dump-section=.BTF={}", types.display()));
    run("objcopy", dump.arg(&vmlinux).arg(&rest))?;
    for file in [packed, vmlinux, rest] {
        fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    }
    Ok(())
}

/// The same of an image that is not compressed, as those of arm64 are.
fn find_types(kernel: &Path, release: &str, types: &Path) -> Result<()> {
    let image = kernel.join(format!("boot/vmlinuz-{release}"));
    let image = fs::read(&image).with_context(|| format!("cannot read {}", image.display()))?;
    let found = types_in(&image).context("the kernel's image has no types")?;
    fs::write(types, found).with_context(|| format!("cannot write {}", types.display()))
}

/// The longest BTF in an image, which is the kernel's: its header has `magic`, `version`, `flags`,
/// `hdr_len`, `type_off`, `type_len`, `str_off`, `str_len` (`struct btf_header` in
/// include/uapi/linux/btf.h).
fn types_in(image: &[u8]) -> Option<&[u8]> {
    const MAGIC: [u8; 8] = [0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let starts = image.windows(MAGIC.len()).enumerate();
    let starts = starts.filter(|(_, bytes)| *bytes == MAGIC);
    let found = starts.filter_map(|(at, _)| {
        let (strings, length) = (word(at + 16)?, word(at + 20)?);
        image.get(at..at.checked_add(24 + strings)?.checked_add(length)?)
    });
    found.max_by_key(|it| it.len())
}

/// The compressed kernel in a bzImage: `setup_sects`, `payload_offset` and
/// `payload_length` of its header (Documentation/arch/x86/boot.rst), without the
/// length at its end.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let setup_sectors = usize::from(*image.get(0x1f1)?);
    let start = (setup_sectors + 1) * 512 + word(0x248)?;
    image.get(start..start + word(0x24c)?.checked_sub(4)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sh;

    #[test]
    fn the_longest_types_in_an_image_are_the_kernels() {
        let types = |length: u32| {
            let words = [0x0001_eb9f, 24, 0, 0, 0, length];
            let mut types: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
            types.extend(vec![7; length as usize]);
            types
        };
        let image = [vec![1; 5], types(3), types(9), vec![0; 4]].concat();
        assert_eq!(types_in(&image), Some(&types(9)[..]));
        // One that is cut off.
        assert_eq!(types_in(&types(9)[..30]), None);
    }

    #[test]
    fn dkms_has_our_version() {
        let conf = paths::root().join("tscap-ebpf/kmod/dkms.conf");
        let conf = fs::read_to_string(conf).unwrap();
        let version = concat!("PACKAGE_VERSION=\"", env!("CARGO_PKG_VERSION"), "\"");
        assert!(conf.lines().any(|line| line == version), "{conf}");
    }

    #[test]
    fn what_the_build_lacks_is_named() {
        if sh::find("make").is_none() {
            println!("SKIPPED what_the_build_lacks_is_named: no make");
            return;
        }
        let kmod = paths::root().join("tscap-ebpf/kmod");
        // That folder has a Makefile, as a kernel's headers do.
        let headers = kmod.display().to_string();
        for (headers, pahole, says) in [
            (
                "/nonexistent",
                "pahole",
                "apt-get install linux-headers-9.9",
            ),
            (&*headers, "no-pahole", "no no-pahole to write its types"),
        ] {
            let mut make = Command::new("make");
            make.arg("-C").arg(&kmod).arg("KVERSION=9.9");
            make.arg(format!("KDIR={headers}"));
            make.arg(format!("PAHOLE={pahole}"));
            let done = make.output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(!done.status.success() && said.contains(says), "{said}");
        }
    }
    /// pahole writes types into it before the other tool goes over them.
    #[test]
    fn no_module_is_left_that_is_half_built() {
        if ["make", "readelf"].iter().any(|it| sh::find(it).is_none()) {
            println!("SKIPPED no_module_is_left_that_is_half_built: no make, or no readelf");
            return;
        }
        let work = std::env::temp_dir().join(format!("xtask-module-{}", std::process::id()));
        fs::create_dir_all(&work).unwrap();
        let makefile = paths::root().join("tscap-ebpf/kmod/Makefile");
        // For headers that build some module without types.
        let headers = "modules:\n\tcp /bin/true $(M)/tscap.ko\n";
        fs::write(work.join("Makefile"), headers).unwrap();
        let mut make = Command::new("make");
        make.current_dir(&work).arg("-f").arg(makefile);
        make.args(["PAHOLE=true", "RESOLVE_BTFIDS=/bin/false"]);
        make.arg(format!("KDIR={}", work.display()));
        make.arg(format!("BTF_BASE={}", work.join("Makefile").display()));
        let done = make.output().unwrap();
        let is_left = work.join("tscap.ko").exists();
        fs::remove_dir_all(&work).unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(said.contains("cp /bin/true"), "{said}");
        assert!(!done.status.success() && !is_left, "{said}");
    }
}
