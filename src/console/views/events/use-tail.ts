import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "../../api/api-error.ts";
import { readStream, type StreamState } from "../../api/event-stream.ts";
import type { Event } from "./event.ts";

/** Maximum number of events in the list. Older events are removed. */
export const MAX_SHOWN = 2_000;
/** Interval between renders, in ms. Rendering each event separately would block the page if many events arrive. */
const DRAW_EVERY_MS = 200;

export interface Tail {
  /** Shown events, newest last. */
  readonly events: readonly Event[];
  /** Number of received events, including filtered ones. */
  readonly seen: number;
  readonly state: StreamState | { readonly is: "paused" } | { readonly is: "failed" };
  readonly error: ApiError | undefined;
  readonly clear: () => void;
  readonly retry: () => void;
}

interface Options {
  readonly path: string;
  /** Whether the stream is paused. The stream is closed meanwhile, and later resumes at its last position without losing events. */
  readonly isPaused: boolean;
  readonly fits: (event: Event) => boolean;
  /** Values that `fits` depends on. When one changes, the events in the list are filtered again. */
  readonly needs: readonly unknown[];
}

export function useTail({ path, isPaused, fits, needs }: Options): Tail {
  const [state, setState] = useState<Tail["state"]>({ is: "connecting" });
  const [error, setError] = useState<ApiError>();
  const [shown, setShown] = useState<{ readonly events: readonly Event[]; readonly seen: number }>({
    events: [],
    seen: 0,
  });
  const [turn, setTurn] = useState(0);
  const position = useRef<{ lastEventId: string | undefined }>({ lastEventId: undefined });
  const latest = useRef(fits);
  latest.current = fits;
  const waiting = useRef<{ events: Event[]; seen: number }>({ events: [], seen: 0 });

  const draw = useCallback(() => {
    const { events, seen } = waiting.current;
    if (seen === 0) return;
    waiting.current = { events: [], seen: 0 };
    setShown((before) => ({
      events: [...before.events, ...events].slice(-MAX_SHOWN),
      seen: before.seen + seen,
    }));
  }, []);

  useEffect(() => {
    setShown(({ events, seen }) => ({ events: events.filter(latest.current), seen }));
  }, needs);

  useEffect(() => {
    setError(undefined);
    if (isPaused) {
      setState({ is: "paused" });
      return undefined;
    }
    const stopping = new AbortController();
    const timer = setInterval(draw, DRAW_EVERY_MS);
    const onEvent = (data: string): void => {
      const event = JSON.parse(data) as Event;
      waiting.current.seen++;
      if (!latest.current(event)) return;
      waiting.current.events.push(event);
      if (waiting.current.events.length > 2 * MAX_SHOWN)
        waiting.current.events.splice(0, waiting.current.events.length - MAX_SHOWN);
    };
    const { signal } = stopping;
    readStream({ path, position: position.current, signal, onEvent, onState: setState }).catch((error) => {
      if (signal.aborted || isAbort(error)) return;
      setState({ is: "failed" });
      setError(toApiError(error));
    });
    return () => {
      stopping.abort();
      clearInterval(timer);
      draw();
    };
  }, [path, isPaused, turn]);

  return {
    ...shown,
    state,
    error,
    clear: useCallback(() => setShown({ events: [], seen: 0 }), []),
    retry: useCallback(() => setTurn((before) => before + 1), []),
  };
}
