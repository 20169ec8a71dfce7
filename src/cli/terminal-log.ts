import { inspect, styleText } from "node:util";
import type { LogDestination } from "../log.ts";

const COLORS = {
  trace: "gray",
  debug: "gray",
  info: "green",
  warn: "yellow",
  error: "red",
  fatal: "red",
} as const;

interface Line {
  readonly level: keyof typeof COLORS;
  /** Time in RFC 3339. */
  readonly time: string;
  readonly event?: string;
  readonly msg?: string;
  readonly err?: { readonly message?: string; readonly stack?: string };
}

/** Events of each start. The greeting says the same in fewer words. */
const START_EVENTS: ReadonlySet<string> = new Set([
  "server.ready",
  "database.migrated",
  "redis.ready",
  "gateway.ready",
]);

interface TerminalOptions {
  /** Whether to leave out the usual events of a start, until the gateway is ready. */
  readonly hasQuietStart?: boolean;
}

/** Converts JSON log lines to readable terminal lines with time, level, message, fields and stack. */
export function createTerminalStream(
  terminal: NodeJS.WriteStream,
  { hasQuietStart = false }: TerminalOptions = {},
): LogDestination {
  let isQuiet = hasQuietStart;
  const colors = terminal.hasColors();
  const paint = (color: Parameters<typeof styleText>[0], text: string): string =>
    colors ? styleText(color, text, { validateStream: false }) : text;

  function format(json: string): string {
    const { level, time, event = "", msg = "", err, ...facts } = JSON.parse(json) as Line;
    if (isQuiet && level === "info" && START_EVENTS.has(event)) {
      isQuiet = event !== "gateway.ready";
      return "";
    }
    const clock = new Date(time).toTimeString().slice(0, 8);
    const told = Object.entries(facts).map(([name, value]) => {
      const text =
        typeof value === "string" ? value : inspect(value, { breakLength: Number.POSITIVE_INFINITY });
      return ` ${paint("dim", `${name}=`)}${text}`;
    });
    const trouble =
      err === undefined ? "" : `\n  ${(err.stack ?? err.message ?? "").replaceAll("\n", "\n  ")}`;
    return `${paint("dim", clock)} ${paint(COLORS[level], level.padEnd(5))} ${msg}${told.join("")}${trouble}\n`;
  }

  return { write: (line) => void terminal.write(format(line)) };
}
