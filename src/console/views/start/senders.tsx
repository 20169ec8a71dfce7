import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { TextField } from "../../kit/form/field.tsx";
import { Section } from "../../kit/layout/page.tsx";
import { WAYS, type Way } from "./ways.tsx";

interface Props {
  readonly presets: readonly Schemas["Preset"][];
  readonly onChoose: (sender: { readonly preset: string } | { readonly way: Way }) => void;
}

/** First step of setting up a channel: the choice of any sender by its way, or of a provider. */
export function Senders({ presets, onChoose }: Props) {
  const [words, setWords] = useState("");
  const logos = useLoad(async () => (await import("virtual:logos")).LOGOS, []);
  const found = presets
    .filter(({ title, preset }) =>
      words
        .toLowerCase()
        .split(/\s+/)
        .every((word) => `${title} ${preset}`.toLowerCase().includes(word)),
    )
    .toSorted((a, b) => a.title.localeCompare(b.title));
  return (
    <>
      <Section title="Any other sender">
        <ul class="ways">
          {Object.entries(WAYS).map(([way, { title, text }]) => (
            <li key={way}>
              <button type="button" class="way" onClick={() => onChoose({ way: way as Way })}>
                <strong>{title}</strong>
                <span class="soft">{text}</span>
              </button>
            </li>
          ))}
        </ul>
      </Section>
      {presets.length > 0 && (
        <Section title="Providers">
          <div class="provider-search">
            <TextField
              label="Sender"
              type="search"
              value={words}
              placeholder={`Search ${presets.length} providers`}
              onChange={setWords}
            />
          </div>
          <ul class="providers">
            {found.map(({ preset, title, description }) => (
              <li key={preset}>
                <button
                  type="button"
                  class="provider"
                  title={description}
                  onClick={() => onChoose({ preset })}
                >
                  <Logo title={title} path={logos.data?.[preset]} />
                  {title}
                </button>
              </li>
            ))}
          </ul>
          <p class="count-line" role="status">
            {found.length} of {presets.length} providers
          </p>
        </Section>
      )}
    </>
  );
}

/** Logo of a provider, or its initial if there is none. */
const Logo = ({ title, path }: { readonly title: string; readonly path: string | undefined }) => (
  <span class="provider-logo" aria-hidden="true">
    {path === undefined ? (
      title.slice(0, 1)
    ) : (
      <svg viewBox="0 0 24 24" aria-hidden="true" focusable="false">
        <path d={path} />
      </svg>
    )}
  </span>
);
