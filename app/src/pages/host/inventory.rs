//! What is on a host: GPUs, drivers, topology, and the settings that nobody sees.

use leptos::prelude::*;
use tokdyno_domain::{
    host::{Disk, Gpu, GpuProcess, Inventory, NcclConf},
    text,
};

use crate::components::{Badge, Glyph, RelativeTime, TableBox, Tone};

/// The inventory.
#[component]
pub(super) fn InventoryView(
    /// What was read.
    inventory: Inventory,
) -> impl IntoView {
    let at = inventory.at;
    let uses = uses(&inventory);
    view! {
        {uses}
        <section class="section">
            <h2>"What is on it"</h2>
            <p class="muted">"Read " <RelativeTime at=at/> "; the test above reads it again."</p>
            {facts(&inventory)}
            {gpus(inventory.gpus)}
        </section>
        <HiddenSettings conf=inventory.nccl_conf/>
        {topology(inventory.topology)}
        {settings(inventory.settings)}
        {(!inventory.notes.is_empty())
            .then(|| {
                view! {
                    <section class="section">
                        <h2>"What could not be read"</h2>
                        <ul class="remarks">
                            {inventory
                                .notes
                                .into_iter()
                                .map(|note| view! { <li>{note}</li> })
                                .collect_view()}
                        </ul>
                    </section>
                }
            })}
    }
}

fn facts(inventory: &Inventory) -> impl IntoView + use<> {
    let known = |text: &str| {
        if text.is_empty() {
            text::NO_FIGURE.to_owned()
        } else {
            text.to_owned()
        }
    };
    let optional = |text: &Option<String>| known(text.as_deref().unwrap_or(""));
    let governors = if inventory.governors.is_empty() {
        String::new()
    } else {
        format!(", governor {}", inventory.governors.join(" and "))
    };
    let slow_governor = inventory
        .governors
        .iter()
        .any(|governor| governor != "performance");
    let mut facts = vec![
        (
            "Machine",
            format!(
                "{} ({})",
                known(&inventory.hostname),
                known(&inventory.user)
            ),
        ),
        (
            "System",
            format!(
                "{}, Linux {}, {}",
                known(&inventory.os),
                known(&inventory.kernel),
                known(&inventory.arch)
            ),
        ),
        ("NVIDIA driver", optional(&inventory.driver)),
        ("CUDA", optional(&inventory.cuda)),
        ("NCCL", optional(&inventory.nccl)),
        (
            "Processor",
            format!(
                "{}, {} threads{governors}",
                known(&inventory.cpu_model),
                inventory.cpus
            ),
        ),
        (
            "Memory",
            format!(
                "{} of {} free",
                bytes(inventory.memory_available),
                bytes(inventory.memory_total)
            ),
        ),
    ];
    if let Some(shm) = &inventory.shm {
        facts.push(("/dev/shm", disk(shm)));
    }
    for one in &inventory.disks {
        facts.push(("Disk", format!("{}: {}", one.mount, disk(one))));
    }
    view! {
        <dl class="facts host-facts">
            {facts
                .into_iter()
                .map(|(label, value)| {
                    view! {
                        <div>
                            <dt>{label}</dt>
                            <dd>{value}</dd>
                        </div>
                    }
                })
                .collect_view()}
        </dl>
        {slow_governor
            .then(|| {
                view! {
                    <p class="caution">
                        "Not every processor runs with the governor performance. Single-stream speed depends on the processor too, and its clock then varies from run to run."
                    </p>
                }
            })}
    }
}

fn gpus(gpus: Vec<Gpu>) -> impl IntoView {
    if gpus.is_empty() {
        return view! { <p class="muted">"No GPU: engines that need none can be launched here all the same."</p> }
            .into_any();
    }
    view! {
        <TableBox label="GPUs">
            <table class="data">
                <thead>
                    <tr>
                        <th scope="col">"GPU"</th>
                        <th scope="col" class="num">"Memory used, MiB"</th>
                        <th scope="col" class="num">"of, MiB"</th>
                        <th scope="col" class="num">"SM clock, MHz"</th>
                        <th scope="col" class="num">"Memory clock, MHz"</th>
                        <th scope="col" class="num">"Power limit, W"</th>
                        <th scope="col">"More"</th>
                    </tr>
                </thead>
                <tbody>{gpus.into_iter().map(gpu).collect_view()}</tbody>
            </table>
        </TableBox>
    }
    .into_any()
}

fn gpu(gpu: Gpu) -> impl IntoView {
    let clock = |value: Option<u32>| {
        value.map_or_else(|| text::NO_FIGURE.to_owned(), |mhz| text::count(mhz.into()))
    };
    let details: Vec<String> = gpu
        .details
        .iter()
        .map(|(label, value)| format!("{label}: {value}"))
        .collect();
    view! {
        <tr>
            <th scope="row">
                {format!("{} · {}", gpu.index, gpu.name)}
                <span class="row-note gpu-uuid">
                    <code>{gpu.uuid}</code>
                </span>
            </th>
            <td class="num">{text::count(gpu.used_mib)}</td>
            <td class="num">{text::count(gpu.memory_mib)}</td>
            <td class="num">{clock(gpu.clocks_mhz.map(|clocks| clocks.0))}</td>
            <td class="num">{clock(gpu.clocks_mhz.map(|clocks| clocks.1))}</td>
            <td class="num">{clock(gpu.power_limit_w)}</td>
            <td>
                <details class="fold">
                    <summary>{text::plural(details.len() as u64, "setting", "settings")}</summary>
                    <ul class="gpu-details">
                        {details.into_iter().map(|detail| view! { <li>{detail}</li> }).collect_view()}
                    </ul>
                </details>
            </td>
        </tr>
    }
}

/// Who holds GPU memory, as of the inventory.
fn uses(inventory: &Inventory) -> impl IntoView + use<> {
    let gpus = inventory.gpus.clone();
    let at = inventory.at;
    let processes = inventory.gpu_processes.clone();
    (!gpus.is_empty()).then(|| {
        let list = if processes.is_empty() {
            view! { <p class="muted">"No process held GPU memory."</p> }.into_any()
        } else {
            view! {
                <TableBox label="Processes on the GPUs">
                    <table class="data">
                        <thead>
                            <tr>
                                <th scope="col">"Process"</th>
                                <th scope="col">"GPU"</th>
                                <th scope="col">"User"</th>
                                <th scope="col" class="num">"Memory, MiB"</th>
                            </tr>
                        </thead>
                        <tbody>
                            {processes
                                .into_iter()
                                .map(|process| process_row(process, &gpus))
                                .collect_view()}
                        </tbody>
                    </table>
                </TableBox>
            }
            .into_any()
        };
        view! {
            <section class="section">
                <h2>"What uses the GPUs"</h2>
                <p class="muted">"As of " <RelativeTime at=at/> "."</p>
                {list}
            </section>
        }
    })
}

fn process_row(process: GpuProcess, gpus: &[Gpu]) -> impl IntoView + use<> {
    let gpu = gpus
        .iter()
        .find(|gpu| gpu.uuid == process.gpu_uuid)
        .map_or_else(|| process.gpu_uuid.clone(), |gpu| gpu.index.to_string());
    view! {
        <tr>
            <th scope="row">
                <code>{process.name}</code>
                <span class="row-note">{format!("process {}", process.pid)}</span>
            </th>
            <td>{gpu}</td>
            <td>{process.user.unwrap_or_else(|| text::NO_FIGURE.to_owned())}</td>
            <td class="num">{text::count(process.used_mib)}</td>
        </tr>
    }
}

/// Variables that take effect without standing in any command.
#[component]
fn HiddenSettings(conf: Vec<NcclConf>) -> impl IntoView {
    let conf: Vec<NcclConf> = conf
        .into_iter()
        .filter(|file| !file.variables.is_empty())
        .collect();
    (!conf.is_empty()).then(|| {
        view! {
            <section class="section">
                <h2>"Settings that no command shows"</h2>
                <p class="caution">
                    "These hold for every engine on this host, whatever a profile says. A launch is stamped as mismatched where one of them sets something that its profile does not ask for."
                </p>
                <TableBox label="Hidden settings">
                    <table class="pairs">
                        <tbody>
                            {conf
                                .into_iter()
                                .flat_map(|file| {
                                    let path = file.path;
                                    file.variables
                                        .into_iter()
                                        .map(move |(name, value)| (path.clone(), name, value))
                                })
                                .map(|(path, name, value)| {
                                    view! {
                                        <tr>
                                            <th scope="row">
                                                <Badge
                                                    tone=Tone::Warn
                                                    glyph=Glyph::Warning
                                                    text="hidden"
                                                />
                                                " "
                                                {name}
                                            </th>
                                            <td>
                                                <code>{value}</code>
                                                <span class="row-note">{path}</span>
                                            </td>
                                        </tr>
                                    }
                                })
                                .collect_view()}
                        </tbody>
                    </table>
                </TableBox>
            </section>
        }
    })
}

fn topology(topology: Option<String>) -> impl IntoView {
    topology.map(|matrix| {
        view! {
            <section class="section">
                <h2>"Topology"</h2>
                <pre class="verbatim" tabindex="0" aria-label="Output of nvidia-smi topo -m">
                    {plain(&matrix)}
                </pre>
            </section>
        }
    })
}

fn settings(settings: Vec<(String, String)>) -> impl IntoView {
    (!settings.is_empty()).then(|| {
        view! {
            <section class="section">
                <h2>"Kernel settings"</h2>
                <TableBox label="Kernel settings">
                    <table class="pairs">
                        <tbody>
                            {settings
                                .into_iter()
                                .map(|(label, value)| {
                                    view! {
                                        <tr>
                                            <th scope="row">{label}</th>
                                            <td>{value}</td>
                                        </tr>
                                    }
                                })
                                .collect_view()}
                        </tbody>
                    </table>
                </TableBox>
            </section>
        }
    })
}

/// Without the sequences that colour or underline on a terminal.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at + 2..];
        // Parameters, then a letter that ends it.
        rest = match sequence.find(|c: char| c.is_ascii_alphabetic()) {
            Some(end) => &sequence[end + 1..],
            None => "",
        };
    }
    plain.push_str(rest);
    plain
}

fn disk(disk: &Disk) -> String {
    format!("{} of {} free", bytes(disk.free), bytes(disk.total))
}

/// `512 MiB`, `1,024 GiB`.
fn bytes(bytes: u64) -> String {
    let mib = bytes >> 20;
    if mib < 10 * 1024 {
        format!("{} MiB", text::count(mib))
    } else {
        format!("{} GiB", text::count(mib >> 10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminals_sequences_are_left_out() {
        assert_eq!(plain("\u{1b}[4mGPU0\tGPU1\u{1b}[0m\nX"), "GPU0\tGPU1\nX");
        assert_eq!(plain("no sequence [4m"), "no sequence [4m");
        assert_eq!(plain("cut\u{1b}[4"), "cut");
    }

    #[test]
    fn sizes_have_a_unit_that_fits() {
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!(bytes(2_048_u64 << 30), "2,048 GiB");
    }
}
