//! How fast the store is, in the database that `DATABASE_URL` names: it must be
//! empty, and is filled.
//!
//! ```sh
//! cargo xtask test-db -- cargo run --release -p tokdyno-lab --example store_speed
//! ```

use tokdyno_lab::{Lab, LabConfig, bench};
use tokdyno_remote::RemoteConfig;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("tokdyno-store-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let lab = Lab::open(LabConfig {
        database_url: std::env::var("DATABASE_URL")?,
        data_dir: folder.clone(),
        key_file: None,
        meter: "tokdyno-meter".into(),
        host_meter: None,
        remote: RemoteConfig::new("tokdyno-agent".into()),
        parallel: 1,
        certify: tokdyno_domain::meter::Certify::Off,
    })
    .await?;
    for _ in 0..3 {
        let times = bench::ingest(&lab, 10_000, 256).await?;
        println!(
            "{} requests of 256 chunks, {} MiB of lines: read in {:.3} s, stored in {:.3} s",
            times.requests,
            times.spool_bytes >> 20,
            times.reading.as_secs_f64(),
            times.storing.as_secs_f64(),
        );
    }
    let times = bench::board(&lab, 1_000).await?;
    println!(
        "Board over {} runs, {} stages: median {:.1} ms, longest {:.1} ms",
        times.runs,
        times.stages,
        times.median.as_secs_f64() * 1e3,
        times.longest.as_secs_f64() * 1e3,
    );
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
