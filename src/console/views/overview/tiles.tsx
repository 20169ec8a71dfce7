import type { ComponentChildren } from "preact";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";
import type { Tone } from "../../kit/layout/page.tsx";

export const Tiles = ({ children }: { readonly children: ComponentChildren }) => (
  <div class="tiles">{children}</div>
);

interface Props {
  readonly title: string;
  readonly hint?: string;
  /** Link to the list of the counted items. */
  readonly href?: string | undefined;
  readonly tone?: Tone | undefined;
  readonly children: ComponentChildren;
}

export const Tile = ({ title, hint, href, tone = "plain", children }: Props) => (
  <MaybeLink href={href} class={`tile ${tone}`}>
    <span class="tile-title">{title}</span>
    <span class="tile-value">{children}</span>
    {hint !== undefined && <span class="tile-hint">{hint}</span>}
  </MaybeLink>
);
