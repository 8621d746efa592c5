// Starts the real program and stand-in engines, each with its own port and data.
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const BIN = resolve(process.env.TOKDYNO_BIN ?? "../target/debug/tokdyno");
const START_TIMEOUT_MS = 60_000;

/** A port nobody listens on now. */
export async function freePort() {
  return new Promise((done, fail) => {
    const server = createServer();
    server.on("error", fail);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

/** A folder that a database of another user may live in. */
export function freshDataDir() {
  const dir = mkdtempSync(join(tmpdir(), "tokdyno-e2e-"));
  // PostgreSQL refuses root, so it runs as somebody who must get through here.
  chmodSync(dir, 0o711);
  return dir;
}

/** Runs `tokdyno ARGS` and waits until its output matches. */
export async function start(args, env, ready) {
  const child = spawn(BIN, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const matched = await new Promise((done, fail) => {
    const timer = setTimeout(() => fail(new Error(`no ${ready} within a minute:\n${output}`)), START_TIMEOUT_MS);
    const read = (bytes) => {
      output += bytes;
      const found = output.match(ready);
      if (found) {
        clearTimeout(timer);
        done(found);
      }
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => fail(new Error(`tokdyno ${args[0]} ended with ${code}:\n${output}`)));
  });
  const stop = () =>
    new Promise((done) => {
      if (child.exitCode !== null || child.signalCode !== null) return done();
      child.on("exit", done);
      child.kill("SIGTERM");
    });
  // As a machine that fails does it: no chance to put anything in order.
  const kill = () =>
    new Promise((done) => {
      if (child.exitCode !== null || child.signalCode !== null) return done();
      child.on("exit", done);
      child.kill("SIGKILL");
    });
  return { matched, stop, kill, pid: child.pid, output: () => output };
}

/** The program with a private database. */
export async function startTokdyno({ args = [], env = {}, dataDir = freshDataDir() } = {}) {
  const port = await freePort();
  const listen = `127.0.0.1:${port}`;
  // What is kept on a host, which this machine may be as well, goes there.
  const home = join(dataDir, "home");
  mkdirSync(home, { recursive: true });
  const program = await start(
    ["serve", "--listen", listen, "--data-dir", dataDir, ...args],
    { HOME: home, ...env },
    /Tokdyno is at (http:\/\/\S+)/,
  );
  return {
    url: program.matched[1],
    dataDir,
    output: program.output,
    kill: program.kill,
    stop: async () => {
      await program.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** A stand-in engine; `truth()` reads what it says it sent. */
export async function startStandIn(engine, args = [], env = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tokdyno-standin-"));
  const log = join(folder, "truth.jsonl");
  const program = await start(
    ["simulate", engine, "--port", "0", "--sim-log", log, ...args],
    env,
    /listening on (http:\/\/\S+)/,
  );
  return {
    url: program.matched[1],
    truth: () =>
      readFileSync(log, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
        .filter((line) => line.received_ns !== undefined && line.stream),
    stop: async () => {
      await program.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The team's NCCL variables. */
export const NCCL_TUNED = {
  NCCL_PROTO: "LL",
  NCCL_ALGO: "Ring",
  NCCL_P2P_LEVEL: "SYS",
  NCCL_MAX_NCHANNELS: "16",
  NCCL_BUFFSIZE: "16777216",
  NCCL_NTHREADS: "512",
};
