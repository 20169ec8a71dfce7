import { LocalTimeInput } from "../../kit/form/local-time.tsx";

interface Props {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** Input for a start position: `now`, `earliest` or a time in UTC, as the API expects. */
export function PlaceInput({ value, onChange }: Props) {
  const kind = value === "now" || value === "earliest" ? value : "time";
  return (
    <fieldset class="field">
      <legend class="field-name">Start position</legend>
      {(
        [
          ["now", "only new events"],
          ["earliest", "all stored events"],
          ["time", "from a time"],
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
        <LocalTimeInput
          label="Time in your time zone"
          value={value}
          onChange={(utc) => utc && onChange(utc)}
        />
      )}
    </fieldset>
  );
}

const hourAgo = (): string => new Date(Date.now() - 3_600_000).toISOString();
