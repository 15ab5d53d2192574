//! Names the eBPF objects that the crate embeds: the committed ones, or the
//! ones that the environment points to.

use std::path::{Path, PathBuf};
use std::{env, process};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The object that `tscap` carries; a packager may build it himself.
    embed(
        "TSCAP_EBPF_OBJECT",
        "../../ebpf/tscap.bpf.o",
        "TSCAP_EBPF_OBJECT_PATH",
    );
    // The frame generator of `tscap gen`.
    embed(
        "TSCAP_GENERATOR_OBJECT",
        "../../ebpf/generator.bpf.o",
        "TSCAP_GENERATOR_OBJECT_PATH",
    );
    // Keys of packets: `tscap delay`.
    embed(
        "TSCAP_DELAY_OBJECT",
        "../../ebpf/delay.bpf.o",
        "TSCAP_DELAY_OBJECT_PATH",
    );
    // Keys of packets at each layer: `tscap qos --layers`.
    embed(
        "TSCAP_LAYERS_OBJECT",
        "../../ebpf/layers.bpf.o",
        "TSCAP_LAYERS_OBJECT_PATH",
    );
    // Stamps for other programs: `tscap stamp`.
    embed(
        "TSCAP_STAMP_OBJECT",
        "../../ebpf/stamp.bpf.o",
        "TSCAP_STAMP_OBJECT_PATH",
    );
    // What a stamp costs: `tscap compare`.
    embed(
        "TSCAP_COMPARE_OBJECT",
        "../../ebpf/compare.bpf.o",
        "TSCAP_COMPARE_OBJECT_PATH",
    );
}

/// Hands the absolute path of an object to the crate as `env!(name)`: the value
/// of the environment variable `variable`, or `default` beside this package.
fn embed(variable: &str, default: &str, name: &str) {
    println!("cargo::rerun-if-env-changed={variable}");
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let chosen = env::var_os(variable).filter(|value| !value.is_empty());
    let object = match &chosen {
        // A relative path counts from the root of the checkout, where one
        // usually stands, not from this package.
        Some(path) => package.ancestors().nth(3).unwrap_or(&package).join(path),
        None => package.join(default),
    };
    println!("cargo::rerun-if-changed={}", object.display());
    if !object.is_file() {
        fail(&object, if chosen.is_some() { variable } else { "" });
    }
    println!("cargo::rustc-env={name}={}", object.display());
}

fn fail(object: &Path, variable: &str) -> ! {
    let why = match variable {
        "" => "it belongs to the sources; `cargo xtask build-ebpf` builds it".to_owned(),
        variable => format!("the environment variable {variable} names it"),
    };
    println!("cargo::error=no eBPF object {}: {why}", object.display());
    process::exit(1);
}
