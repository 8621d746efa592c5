//! GPUs, asked through `nvidia-smi`. A host without it has none.

use std::path::PathBuf;

use tokdyno_domain::host::{Gpu, GpuProcess};

use super::{bounded, nvidia, process, users};

const FORMAT: &str = "--format=csv,noheader,nounits";

pub(super) fn program() -> Option<PathBuf> {
    bounded::find("nvidia-smi")
}

/// Answer to `--query-gpu=fields`.
pub(super) fn query(program: &std::path::Path, fields: &str) -> Result<String, String> {
    let query = format!("--query-gpu={fields}");
    bounded::ask(program, &[&query, FORMAT], bounded::LIMIT)
}

/// All GPUs with their details, or without those if the driver does not know them.
pub(super) fn all(program: &std::path::Path) -> Result<Vec<Gpu>, String> {
    let details: Vec<&str> = nvidia::DETAIL_FIELDS
        .iter()
        .map(|(field, _)| *field)
        .collect();
    let whole = format!("{},{}", nvidia::GPU_FIELDS, details.join(","));
    query(program, &whole)
        .or_else(|_| query(program, nvidia::GPU_FIELDS))
        .map(|text| nvidia::gpus(&text))
}

/// Who holds GPU memory. Empty where nothing can be asked.
pub(super) fn processes() -> Vec<GpuProcess> {
    program()
        .and_then(|program| ask_processes(&program).ok())
        .unwrap_or_default()
}

/// Who holds GPU memory, and whose those processes are.
pub(super) fn ask_processes(program: &std::path::Path) -> Result<Vec<GpuProcess>, String> {
    let query = format!("--query-compute-apps={}", nvidia::PROCESS_FIELDS);
    let text = bounded::ask(program, &[&query, FORMAT], bounded::LIMIT)?;
    let mut found = nvidia::processes(&text);
    for holder in &mut found {
        holder.user = process::uid(holder.pid).map(users::name);
    }
    Ok(found)
}

/// Arguments of a query that repeats itself each second.
pub(super) fn each_second(fields: &str) -> [String; 3] {
    [
        format!("--query-gpu={fields}"),
        FORMAT.to_owned(),
        "--loop-ms=1000".to_owned(),
    ]
}
