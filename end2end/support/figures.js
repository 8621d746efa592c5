// What the stand-in says it sent, in the terms of docs/metrics.md.

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return (sorted[Math.floor(middle)] + sorted[Math.ceil(middle)]) / 2;
};

/** The requests of each stage, warm-up (which is shorter) left out. */
export function stagesOf(truth, outputTokens, sizes) {
  const counted = truth
    .filter((line) => line.tokens === outputTokens)
    .sort((a, b) => a.received_ns - b.received_ns);
  let from = 0;
  return sizes.map((size) => counted.slice(from, (from += size)));
}

/** Median of tokens per second of each request, in tok/s. */
export const singleStream = (requests) =>
  median(requests.map((line) => (line.tokens * 1e9) / (line.last_sent_ns - line.received_ns)));

/** All tokens over the time from the first request to the last token, in tok/s. */
export function outputTps(requests) {
  const tokens = requests.reduce((sum, line) => sum + line.tokens, 0);
  const from = Math.min(...requests.map((line) => line.received_ns));
  const to = Math.max(...requests.map((line) => line.last_sent_ns));
  return (tokens * 1e9) / (to - from);
}

/** A figure as the pages write it. */
export function figure(value) {
  const size = Math.abs(value);
  const digits = size === 0 ? 0 : size < 1 ? 3 : size < 20 ? 2 : size < 1000 ? 1 : 0;
  const [whole, fraction] = value.toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction ? `${grouped}.${fraction}` : grouped;
}
