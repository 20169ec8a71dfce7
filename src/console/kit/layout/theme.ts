import { signal } from "@preact/signals";

const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const STORAGE_KEY = "inlet.theme";

function readStoredTheme(): Theme {
  const found = localStorage.getItem(STORAGE_KEY);
  return THEMES.find((one) => one === found) ?? "auto";
}

/** `auto` follows the operating system. */
export const theme = signal<Theme>("auto");

/** Applies a theme and stores it for the next visit. Default: the stored theme. */
export function applyTheme(next: Theme = readStoredTheme()): void {
  theme.value = next;
  if (next === "auto") {
    localStorage.removeItem(STORAGE_KEY);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(STORAGE_KEY, next);
    document.documentElement.dataset.theme = next;
  }
}

export const nextTheme = (): Theme => THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "auto";
