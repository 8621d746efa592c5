// A host behind SSH: a real sshd on loopback with a home of its own, and simulated GPUs
// that a small nvidia-smi on its PATH tells of.
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

import { BIN, start } from "./program.js";

const SSHD = resolve(process.env.TOKDYNO_TEST_SSHD ?? "../target/debug/examples/test_sshd");

/** Eight GPUs as a folder that the stand-in and its nvidia-smi share. */
function simulatedGpus() {
  const folder = mkdtempSync(join(tmpdir(), "tokdyno-gpus-"));
  const gpus = Array.from({ length: 8 }, (_, index) => ({
    uuid: `GPU-0000000${index}-0000-0000-0000-000000000000`,
    name: "RTX PRO 6000 (simulated)",
    memory_mib: 97_887,
  }));
  writeFileSync(
    join(folder, "gpus.json"),
    JSON.stringify({ gpus, driver: "580.95.05", cuda: "13.0" }),
  );
  return folder;
}

/** The host. `sshConfig` and `destination` reach it; `gpus` is the folder of its GPUs. */
export async function startHost() {
  const gpus = simulatedGpus();
  const child = spawn(SSHD, [], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await new Promise((done, fail) => {
    child.on("error", fail);
    child.on("exit", (code) => fail(new Error(`the test sshd ended with ${code}`)));
    createInterface({ input: child.stdout }).once("line", (line) => done([line]));
  });
  const sshd = JSON.parse(line);
  const smi = join(sshd.home, "bin", "nvidia-smi");
  writeFileSync(
    smi,
    `#!/bin/sh\nTOKDYNO_SIM_GPUS='${gpus}' exec '${BIN}' simulate nvidia-smi "$@"\n`,
  );
  chmodSync(smi, 0o755);
  return {
    sshConfig: sshd.ssh_config,
    destination: sshd.destination,
    gpus,
    stop: async () => {
      await new Promise((done) => {
        child.removeAllListeners("exit");
        child.on("exit", done);
        child.stdin.end();
      });
      rmSync(gpus, { recursive: true, force: true });
    },
  };
}

/** A server that was there before and that nobody launched from here. */
export async function startProduction(port, gpus) {
  const program = await start(
    ["simulate", "vllm", "production-model", "--port", String(port), "--tensor-parallel-size", "8"],
    { TOKDYNO_SIM_GPUS: gpus },
    /listening on (http:\/\/\S+)/,
  );
  return { url: `http://127.0.0.1:${port}`, pid: program.pid, stop: program.stop };
}

/** A file in which a stand-in writes what it sent, and what it holds. */
export function truthLog() {
  const folder = mkdtempSync(join(tmpdir(), "tokdyno-truth-"));
  const path = join(folder, "truth.jsonl");
  return {
    path,
    read: () =>
      readFileSync(path, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
        .filter((line) => line.received_ns !== undefined && line.stream),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
