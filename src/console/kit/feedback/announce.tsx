import { signal } from "@preact/signals";

const said = signal("");

/** Says something to who hears the page. */
export function announce(text: string): void {
  // The same text twice is no change to those who listen.
  said.value = said.peek() === text ? `${text}\u00a0` : text;
}

/** Stands once in the page. */
export function LiveRegion() {
  return (
    <div class="sr-only" aria-live="polite" role="status">
      {said}
    </div>
  );
}
