/** Where reading begins, as the API takes it: `now`, `earliest`, or a time in UTC. */
export function PlaceInput({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  const kind = value === "now" || value === "earliest" ? value : "time";
  return (
    <fieldset class="field">
      <legend class="field-name">Where it begins</legend>
      {(
        [
          ["now", "with what comes from now on"],
          ["earliest", "with the oldest that is kept"],
          ["time", "at a time"],
        ] as const
      ).map(([name, words]) => (
        <label key={name} class="check">
          <input
            type="radio"
            name="place"
            checked={kind === name}
            onChange={() => onChange(name === "time" ? hourAgo() : name)}
          />
          <span>{words}</span>
        </label>
      ))}
      {kind === "time" && (
        <input
          type="datetime-local"
          step={1}
          aria-label="Time, in your zone"
          value={localOf(value)}
          onInput={({ currentTarget: { value: local } }) => {
            const date = new Date(local);
            if (!Number.isNaN(date.getTime())) onChange(date.toISOString());
          }}
        />
      )}
    </fieldset>
  );
}

const hourAgo = (): string => new Date(Date.now() - 3_600_000).toISOString();

/** As the field shows it: the reader's zone, without naming it. */
export function localOf(utc: string): string {
  const date = new Date(utc);
  return Number.isNaN(date.getTime())
    ? ""
    : new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
