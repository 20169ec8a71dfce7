import { signal } from "@preact/signals";

const message = signal("");

/** Announces a text to screen readers. */
export function announce(text: string): void {
  // Screen readers ignore an unchanged text, so a repeated text gets a trailing space.
  message.value = message.peek() === text ? `${text}\u00a0` : text;
}

/** Live region for `announce`. The page must contain it once. */
export function LiveRegion() {
  return (
    <div class="sr-only" aria-live="polite" role="status">
      {message}
    </div>
  );
}
