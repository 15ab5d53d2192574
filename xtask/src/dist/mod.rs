//! `dist`: what people install, built into target/dist.

pub mod apt;
mod binary;
mod deb;
mod dkms;
mod files;
mod rpm;
mod source;
mod tarball;
mod test;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::source::Source;
use self::test::Suite;
use crate::{paths, setup};

/// Options of `dist`.
#[derive(clap::Args)]
pub struct Args {
    /// Also install them in a bare Debian, run them there, upgrade and purge them (as root)
    #[arg(long)]
    test: bool,
    /// The Debian to install them in
    #[arg(long, requires = "test", value_enum, default_value_t)]
    suite: Suite,
}

/// The packages.
pub struct Packages {
    deb: PathBuf,
    dkms: PathBuf,
    rpm: PathBuf,
    tarball: PathBuf,
}

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    setup::dist(args.test)?;
    let folder = folder();
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let packages = build(&folder)?;
    if args.test {
        test::run(&folder, &packages, args.suite)?;
    }
    Ok(())
}

/// Where everything goes.
fn folder() -> PathBuf {
    paths::root().join("target/dist")
}

fn build(folder: &Path) -> Result<Packages> {
    let source = Source::here()?;
    let program = binary::build(folder)?;
    let packages = Packages {
        deb: deb::build(folder, &source, &program)?,
        dkms: dkms::build(folder, &source)?,
        rpm: rpm::build(folder, &source, &program)?,
        tarball: tarball::build(folder, &source, &program)?,
    };
    println!();
    let Packages {
        deb,
        dkms,
        rpm,
        tarball,
    } = &packages;
    for file in [&program, deb, dkms, rpm, tarball] {
        println!(
            "{:>10} bytes  {}",
            fs::metadata(file)?.len(),
            file.display()
        );
    }
    Ok(packages)
}

/// An empty folder of that name.
pub fn empty(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}
