import type { Change, ChangeFeed, ChangeListener } from "../../src/data/changes.ts";

/** A change feed that only reports changes made by the test. */
export interface TestChanges extends Pick<ChangeFeed, "subscribe" | "stalenessMs"> {
  readonly change: (change: Change) => void;
  readonly reset: () => void;
}

export function createTestChanges(): TestChanges {
  const listeners: ChangeListener[] = [];
  return {
    subscribe: (listener) => void listeners.push(listener),
    stalenessMs: () => 0,
    change(change) {
      for (const { onChange } of listeners) onChange(change);
    },
    reset() {
      for (const { onReset } of listeners) onReset();
    },
  };
}
