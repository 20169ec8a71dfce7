/** Signals that stop the process, with their numbers. Closing the terminal sends SIGHUP. */
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
const SAME_SIGNAL_MS = 500;

/**
 * Returns a signal that aborts at the first stop signal; a second one exits immediately. A repeat within 0.5 s is ignored, because
 * npm forwards a Ctrl-C that the process has already received.
 *
 * @param onStop called at the first stop signal
 */
export function stopOnSignals(onStop: (signal: string) => void): AbortSignal {
  const stopping = new AbortController();
  let firstAtMs = 0;
  for (const [signal, number] of Object.entries(SIGNALS)) {
    process.on(signal, () => {
      if (stopping.signal.aborted) {
        if (performance.now() - firstAtMs > SAME_SIGNAL_MS) process.exit(128 + number);
        return;
      }
      firstAtMs = performance.now();
      onStop(signal);
      stopping.abort(new Error(`stopped by ${signal}`));
    });
  }
  return stopping.signal;
}
