import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { announce } from "../feedback/announce.tsx";
import { toShown } from "../text/untrusted-text.tsx";
import { visibleText } from "../text/visible.ts";
import { Icon } from "./icons.tsx";

export interface Crumb {
  readonly title: string;
  readonly href: string;
}

interface Props {
  readonly title: string;
  /** Parent pages, from the top level down. */
  readonly crumbs?: readonly Crumb[];
  readonly badges?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** One sentence below the title. */
  readonly lead?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Page({ title: given, crumbs = [], badges, actions, lead, children }: Props) {
  // Escape invisible characters, because the title can contain untrusted text, such as an entity's name.
  const title = visibleText(given);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} · Inlet`;
    if (!isFirst.current) return;
    isFirst.current = false;
    announce(title);
  }, [title]);
  return (
    <div class="page">
      <header class="page-head">
        {crumbs.length > 0 && (
          <nav class="crumbs" aria-label="Breadcrumbs">
            <ol>
              {crumbs.map(({ title: name, href }) => (
                <li key={href}>
                  <a href={href}>{visibleText(name)}</a>
                  <Icon name="right" />
                </li>
              ))}
            </ol>
          </nav>
        )}
        <div class="page-title">
          <h1>{title}</h1>
          {badges}
          <span class="grow" />
          {actions && <div class="row wrap">{actions}</div>}
        </div>
        {lead && <p class="lead">{lead}</p>}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Section({ title, actions, children }: SectionProps) {
  return (
    <section class="section">
      <header class="section-head">
        <h2>{title}</h2>
        <span class="grow" />
        {actions}
      </header>
      {children}
    </section>
  );
}

/** Values by name. A text is shown as untrusted text, and `false` hides the fact. */
export type NamedFacts = Readonly<Record<string, ComponentChildren>>;

export const Facts = ({ facts }: { readonly facts: NamedFacts }) => (
  <dl class="facts">
    {Object.entries(facts).map(
      ([name, value]) =>
        value !== false && (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{toShown(value)}</dd>
          </div>
        ),
    )}
  </dl>
);

export type Tone = "ok" | "bad" | "warn" | "info" | "plain";

interface BadgeProps {
  readonly tone?: Tone;
  readonly children: ComponentChildren;
}

/** Colored label for a state. The text must be sufficient alone, because some users cannot see the color. */
export function Badge({ tone = "plain", children }: BadgeProps) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
