//! The manifest beside the committed eBPF objects: what they were built from,
//! and with what.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Name of the manifest in the folder of the objects.
pub const FILE: &str = "manifest.json";
/// Version of the manifest's layout.
pub const SCHEMA: u32 = 1;

/// What the objects are built from, relative to the checkout: files, and
/// folders with everything in them.
const SOURCES: [&str; 5] = [
    "tscap-common/Cargo.toml",
    "tscap-common/src",
    "tscap-ebpf/Cargo.lock",
    "tscap-ebpf/Cargo.toml",
    "tscap-ebpf/src",
];

/// Programs whose versions decide the bytes of the objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    /// First line of `rustc --version`.
    pub rustc: String,
    /// First line of `bpf-linker --version`.
    pub bpf_linker: String,
    /// Version of LLVM that bpf-linker and llvm-objcopy use.
    pub llvm: String,
}

/// The content of `manifest.json`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// [`source_hash`] of the sources that the objects were built from.
    pub hash: String,
    /// What they were built with.
    #[serde(flatten)]
    pub tools: Tools,
    /// File name of each object and the SHA-256 of its bytes, in hex.
    pub objects: BTreeMap<String, String>,
}

impl Manifest {
    /// Reads the manifest in `folder`.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let manifest: Self = serde_json::from_str(&text)
            .with_context(|| format!("cannot understand {}", path.display()))?;
        if manifest.schema != SCHEMA {
            bail!(
                "{}: schema {} where this xtask writes {SCHEMA}",
                path.display(),
                manifest.schema
            );
        }
        Ok(manifest)
    }

    /// Writes the manifest into `folder`.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Fails unless the objects in `folder` are the ones of this manifest, and
    /// were built from the sources as they now are in the checkout `root`.
    pub fn check_fresh(&self, root: &Path, folder: &Path) -> Result<()> {
        if self.hash != source_hash(root)? {
            bail!(
                "the eBPF objects in {} were built from other sources than these: \
                 run `cargo xtask build-ebpf` and commit the result",
                folder.display()
            );
        }
        for (name, hash) in &self.objects {
            if *hash != file_hash(&folder.join(name))? {
                bail!(
                    "{} is not the object that its manifest describes: \
                     run `cargo xtask build-ebpf` and commit the result",
                    folder.join(name).display()
                );
            }
        }
        Ok(())
    }
}

/// SHA-256 over all sources in the order of their names: for each the name
/// relative to `root`, a zero byte, the length (u64, little endian), the bytes.
pub fn source_hash(root: &Path) -> Result<String> {
    let mut files = Vec::new();
    for source in SOURCES {
        collect(root, Path::new(source), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let bytes = read(&root.join(&file))?;
        hash.update(file.to_string_lossy().as_bytes());
        hash.update([0]);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    Ok(hex(hash))
}

/// SHA-256 of a file, in hex.
pub fn file_hash(path: &Path) -> Result<String> {
    Ok(hex(Sha256::new_with_prefix(read(path)?)))
}

fn collect(root: &Path, path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let full = root.join(path);
    if full.is_file() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let entries = fs::read_dir(&full).with_context(|| format!("cannot list {}", full.display()))?;
    for entry in entries {
        collect(root, &path.join(entry?.file_name()), files)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn hex(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn committed_objects_are_built_from_these_sources() {
        let folder = paths::committed_objects();
        let manifest = Manifest::read(&folder).unwrap();
        manifest.check_fresh(&paths::root(), &folder).unwrap();
    }

    #[test]
    fn every_object_is_in_the_manifest() {
        let manifest = Manifest::read(&paths::committed_objects()).unwrap();
        let names: Vec<_> = manifest.objects.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "compare.bpf.o",
                "delay.bpf.o",
                "generator.bpf.o",
                "layers.bpf.o",
                "probes.bpf.o",
                "stamp.bpf.o",
                "tscap.bpf.o"
            ]
        );
    }

    #[test]
    fn another_source_or_object_is_stale() {
        let root = std::env::temp_dir().join(format!("xtask-manifest-{}", std::process::id()));
        for file in ["Cargo.toml", "src/lib.rs"] {
            write(&root.join("tscap-common").join(file), "common");
        }
        for file in ["Cargo.toml", "Cargo.lock", "src/main.rs"] {
            write(&root.join("tscap-ebpf").join(file), "ebpf");
        }
        let object = root.join("tscap.bpf.o");
        write(&object, "object");
        let manifest = Manifest {
            schema: SCHEMA,
            hash: source_hash(&root).unwrap(),
            tools: Tools {
                rustc: String::new(),
                bpf_linker: String::new(),
                llvm: String::new(),
            },
            objects: BTreeMap::from([("tscap.bpf.o".to_owned(), file_hash(&object).unwrap())]),
        };
        let check = || {
            manifest
                .check_fresh(&root, &root)
                .map_err(|e| e.to_string())
        };
        assert_eq!(check(), Ok(()));

        write(&object, "another object");
        assert!(check().unwrap_err().contains("is not the object"));
        write(&object, "object");

        write(&root.join("tscap-common/src/new.rs"), "");
        assert!(check().unwrap_err().contains("other sources"));
        fs::remove_dir_all(&root).unwrap();
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}
