import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { announce } from "../feedback/announce.tsx";
import { visibleText } from "../text/visible.ts";
import { Icon } from "./icons.tsx";

export interface Crumb {
  readonly title: string;
  readonly href: string;
}

interface Props {
  readonly title: string;
  /** From the top down, without the page itself. */
  readonly crumbs?: readonly Crumb[];
  /** Beside the title: states, badges. */
  readonly beside?: ComponentChildren;
  /** Buttons at the right. */
  readonly actions?: ComponentChildren;
  /** One sentence under the title. */
  readonly lead?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The frame of a view: its title, where it stands, what can be done with it. */
export function Page({ title: given, crumbs = [], beside, actions, lead, children }: Props) {
  // It may be the name of something that came from outside.
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
          {beside}
          <span class="grow" />
          {actions && <div class="row wrap">{actions}</div>}
        </div>
        {lead && <p class="lead">{lead}</p>}
      </header>
      {children}
    </div>
  );
}

/** A part of a page with a heading of its own. */
export function Section({
  title,
  actions,
  children,
}: {
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
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

/** Facts as names and values. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export type Tone = "ok" | "bad" | "warn" | "info" | "plain";

/** A state in a word; its colour is never all that tells it. */
export function Badge({
  tone = "plain",
  children,
}: {
  readonly tone?: Tone;
  readonly children: ComponentChildren;
}) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
