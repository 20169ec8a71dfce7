export interface BatchValues {
  readonly maxEvents: string;
  /** Empty for the default of the API, like `maxWaitMs`. */
  readonly maxBytes: string;
  readonly maxWaitMs: string;
}

export const NO_BATCH: BatchValues = { maxEvents: "1", maxBytes: "", maxWaitMs: "" };

/** Returns the `batch` of a handler with these values. */
export function toBatch({ maxEvents, maxBytes, maxWaitMs }: BatchValues) {
  if (maxEvents === "1") return {};
  return {
    batch: {
      maxEvents: Number(maxEvents),
      ...(maxBytes !== "" && { maxBytes: Number(maxBytes) }),
      ...(maxWaitMs !== "" && { maxWaitMs: Number(maxWaitMs) }),
    },
  };
}

interface Props {
  readonly values: BatchValues;
  readonly onChange: (values: BatchValues) => void;
}

/** Fields for the number of events in a request. The limits of a batch appear if a request may contain several. */
export function BatchInput({ values, onChange }: Props) {
  return (
    <>
      <label class="field">
        <span class="field-name">Events per request</span>
        <input
          type="number"
          min={1}
          max={1_000}
          required
          value={values.maxEvents}
          onInput={(event) => onChange({ ...values, maxEvents: event.currentTarget.value })}
        />
        <span class="field-help">
          With more than one, each request is a batch of CloudEvents, and your handler can reject some of
          them.
        </span>
      </label>
      {values.maxEvents !== "1" && (
        <>
          <label class="field">
            <span class="field-name">
              Bytes per request <span class="faint">optional</span>
            </span>
            <input
              type="number"
              min={1_024}
              max={16 * 1024 * 1024}
              placeholder="1048576"
              value={values.maxBytes}
              onInput={(event) => onChange({ ...values, maxBytes: event.currentTarget.value })}
            />
            <span class="field-help">A larger event is sent alone.</span>
          </label>
          <label class="field">
            <span class="field-name">
              Wait for more events, in milliseconds <span class="faint">optional</span>
            </span>
            <input
              type="number"
              min={0}
              max={60_000}
              placeholder="1000"
              value={values.maxWaitMs}
              onInput={(event) => onChange({ ...values, maxWaitMs: event.currentTarget.value })}
            />
            <span class="field-help">A request is sent earlier if it is full.</span>
          </label>
        </>
      )}
    </>
  );
}
