/** Icons as SVG paths in a 16 × 16 box, drawn as lines in the text color. */
const PATHS = {
  overview: "M2 13V8m4 5V3m4 10V6m4 7V4",
  deliveries: "M2 8h9m-3-3 3 3-3 3M14 3v10",
  events: "M3 4h10M3 8h10M3 12h6",
  tail: "M2 8h3l2-5 3 10 2-5h2",
  quarantine: "M8 2l6 11H2L8 2zm0 4v3m0 2v.1",
  deadLetters: "M2 4h12v8H2zM2 4l6 5 6-5",
  channels: "M3 3h4v4H3zM9 9h4v4H9zM7 5h2a2 2 0 0 1 2 2v2",
  sources: "M8 2v6m-3-3 3 3 3-3M3 11v2h10v-2",
  definitions: "M5 3 2 8l3 5m6-10 3 5-3 5",
  subscriptions: "M3 8a5 5 0 0 1 10 0M3 8v3h2V8m8 0v3h-2V8",
  agents: "M3 6h10v7H3zM8 6V3M6 9v1M10 9v1",
  problems: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm0 3v4m0 2v.1",
  apps: "M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z",
  blueprints: "M3 2h7l3 3v9H3zM10 2v3h3M5 8h6M5 11h4",
  connections: "M6 10l4-4M5 7 3.5 8.5a2.5 2.5 0 0 0 4 4L9 11m2-2 1.5-1.5a2.5 2.5 0 0 0-4-4L7 5",
  keys: "M10 2.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM7.500 8.500 2 14m2-2 1.500 1.500",
  audit: "M3 2h10v12H3zM6 5h4M6 8h4M6 11h2",
  organization: "M2 14V6l6-4 6 4v8M6 14v-4h4v4",
  start: "M5 3l8 5-8 5V3z",
  filter: "M2 4h12M4 8h8M6 12h4",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm3 7 3.5 3.5",
  close: "M4 4l8 8m0-8-8 8",
  copy: "M6 6h7v7H6zM3 10V3h7",
  check: "M3 8l3.5 3.5L13 5",
  menu: "M2 4h12M2 8h12M2 12h12",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1m8 8 1 1M13 3l-1 1m-8 8-1 1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500z",
  auto: "M8 2a6 6 0 1 0 0 12V2z",
  signOut: "M6 3H3v10h3M7 8h7m-3-3 3 3-3 3",
  right: "M6 3l5 5-5 5",
  down: "M4 6l4 4 4-4",
  plus: "M8 3v10M3 8h10",
  refresh: "M13 8a5 5 0 1 1-1.500-3.500L13 6m0-3v3h-3",
  help: "M6 6a2 2 0 1 1 2.500 2c-.500.200-.500.500-.500 1.500m0 2v.100",
} as const;

export type IconName = keyof typeof PATHS;

/** The mark of Inlet: several streams that become one. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <rect width="32" height="32" rx="8" />
    <path d="M6 8.5h3c7 0 5 7.5 12 7.5M6 23.5h3c7 0 5-7.5 12-7.5M6 16h20" />
  </svg>
);

/** Icon that screen readers ignore. Use it next to a text or in an element with a label. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
