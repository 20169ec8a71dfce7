import { TextField } from "../../kit/form/field.tsx";

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
  const field = (name: keyof BatchValues) => ({
    type: "number" as const,
    value: values[name],
    onChange: (value: string) => onChange({ ...values, [name]: value }),
  });
  return (
    <>
      <TextField
        label="Events per request"
        help="With more than one, each request is a batch of CloudEvents, and your handler can reject some of them."
        min={1}
        max={1_000}
        required
        {...field("maxEvents")}
      />
      {values.maxEvents !== "1" && (
        <>
          <TextField
            label="Bytes per request"
            isOptional
            help="A larger event is sent alone."
            min={1_024}
            max={16 * 1024 * 1024}
            placeholder="1048576"
            {...field("maxBytes")}
          />
          <TextField
            label="Wait for more events, in milliseconds"
            isOptional
            help="A request is sent earlier if it is full."
            min={0}
            max={60_000}
            placeholder="1000"
            {...field("maxWaitMs")}
          />
        </>
      )}
    </>
  );
}
