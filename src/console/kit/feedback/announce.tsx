import { signal } from "@preact/signals";

const message = signal("");

/** Announces a text to screen readers. */
export function announce(text: string): void {
  // A repeated text gets a trailing space, because screen readers ignore a text that has not changed.
  message.value = message.peek() === text ? `${text}\u00a0` : text;
}

/** Element whose text screen readers announce. `announce` sets the text. The page must contain this component once. */
export function LiveRegion() {
  return (
    <div class="sr-only" aria-live="polite" role="status">
      {message}
    </div>
  );
}
