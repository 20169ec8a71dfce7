interface Props {
  readonly label: string;
  /** RFC 3339 time in UTC, or empty. */
  readonly value: string;
  readonly onChange: (utc: string) => void;
}

/** Input for a time. The user sees the local time zone, but `value` is in UTC, as the API expects. */
export const LocalTimeInput = ({ label, value, onChange }: Props) => (
  <input
    type="datetime-local"
    step={1}
    aria-label={label}
    value={formatLocal(value)}
    onChange={(event) => onChange(formatUtc(event.currentTarget.value))}
  />
);

function formatLocal(utc: string): string {
  const date = new Date(utc);
  if (utc === "" || Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function formatUtc(local: string): string {
  const date = new Date(local);
  return local === "" || Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
