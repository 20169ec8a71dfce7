import { signal } from "@preact/signals";
import { formatDuration } from "./numbers.ts";

const FULL = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
  fractionalSecondDigits: 3,
  timeZoneName: "short",
});
const SHORT = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
  fractionalSecondDigits: 3,
});

/** Current time. It is updated twice a minute, so that texts such as "3 min ago" stay correct. */
const now = signal(Date.now());
export function startClock(): () => void {
  const timer = setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 30_000);
  return () => clearInterval(timer);
}

interface Props {
  /** RFC 3339 time, or Unix time in milliseconds. */
  readonly at: string | number | null | undefined;
  /** `short` is the date and time, or the elapsed time in a narrow list. `full` adds UTC, if it differs. `ago` is the elapsed time. */
  readonly as?: "short" | "full" | "ago";
}

/** Shows a time in the user's time zone, and in UTC next to it or in a tooltip. */
export function Time({ at, as = "short" }: Props) {
  const date = at === null || at === undefined ? undefined : new Date(at);
  if (date === undefined || Number.isNaN(date.getTime())) return <span class="faint">–</span>;
  const utc = date.toISOString();
  switch (as) {
    case "full":
      return (
        <span class="time">
          <time dateTime={utc} title={utc}>
            {FULL.format(date)}
          </time>{" "}
          {date.getTimezoneOffset() !== 0 && <span class="faint nowrap">{utc}</span>}
        </span>
      );
    case "ago":
      return (
        <time class="time" dateTime={utc} title={`${FULL.format(date)}\n${utc}`}>
          {formatAgo(date.getTime(), now.value)}
        </time>
      );
    case "short":
      return (
        <time class="time" dateTime={utc} title={`${FULL.format(date)}\n${utc}`}>
          <span class="in-wide">{SHORT.format(date)}</span>
          <span class="in-narrow">{formatAgo(date.getTime(), now.value)}</span>
        </time>
      );
    default:
      return as satisfies never;
  }
}

function formatAgo(atMs: number, nowMs: number): string {
  const passedMs = nowMs - atMs;
  if (Math.abs(passedMs) < 5_000) return "just now";
  const words = formatDuration(Math.floor(Math.abs(passedMs) / 1_000) * 1_000).replace(/[.,]\d+/, "");
  return passedMs < 0 ? `in ${words}` : `${words} ago`;
}
