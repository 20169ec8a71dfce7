import { useEffect, useState } from "preact/hooks";

/** Hook that returns a value once it has not changed for `delayMs`, so that typing does not send a request for each letter. */
export function useRested<Value>(value: Value, delayMs: number): Value {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), delayMs);
    return () => clearTimeout(timer);
  }, [value]);
  return rested;
}
