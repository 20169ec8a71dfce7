import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { useLocation } from "preact-iso";
import { NAV_GROUPS, VIEWS, type View } from "../../routes.ts";
import { caller, hasPermission, signOut } from "../../session/session.ts";
import { Palette, PaletteButton } from "../palette/palette.tsx";
import { formatShort } from "../text/numbers.ts";
import { UntrustedText } from "../text/untrusted-text.tsx";
import { AppSwitcher, AppSwitcherDialog } from "./app-switcher.tsx";
import { apps, reloadApps, useAppId } from "./apps.tsx";
import { Button } from "./button.tsx";
import { Icon, Mark } from "./icons.tsx";
import { knownViews } from "./links.ts";
import { Badge } from "./page.tsx";
import { problems, useProblems } from "./problems.ts";
import { openShortcutHelp, useShortcut } from "./shortcuts.tsx";
import { applyTheme, nextTheme, theme } from "./theme.ts";

const isInApp = ({ path }: View): boolean => path.startsWith("/apps/:appId/");

/** Returns the URL of a view, or `undefined` if the view needs an app and there is none. */
const hrefOf = (view: View, appId: string | undefined): string | undefined => {
  if (!isInApp(view)) return view.path === "/" ? "/console/" : `/console${view.path}`;
  return appId === undefined ? undefined : `/console${view.path.replace(":appId", appId)}`;
};

export function Shell({ children }: { readonly children: ComponentChildren }) {
  const { path } = useLocation();
  const isOpen = useSignal(false);
  useEffect(() => {
    // Ignore the failure here. The app switcher stays empty, and views that need the apps show the error themselves.
    void reloadApps().catch(() => {});
    return () => {
      apps.value = undefined;
    };
  }, [caller.value.organization.id]);
  useProblems();
  useMemo(() => {
    knownViews.value = new Set(
      VIEWS.filter(({ needs }) => needs === undefined || hasPermission(needs)).map((view) => view.path),
    );
  }, [caller.value]);
  useEffect(() => {
    isOpen.value = false;
  }, [path]);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <Button
          look="quiet icon-only menu"
          aria-expanded={isOpen.value}
          aria-controls="nav"
          aria-label="Navigation"
          onClick={() => (isOpen.value = !isOpen.value)}
        >
          <Icon name="menu" />
        </Button>
        <a class="brand" href="/console/">
          <Mark />
          Inlet
        </a>
      </header>
      <nav id="nav" class={isOpen.value ? "nav open" : "nav"} aria-label="Views">
        <a class="brand" href="/console/">
          <Mark />
          Inlet
        </a>
        <PaletteButton />
        {NAV_GROUPS.map((group) => (
          <NavGroup key={group} group={group} />
        ))}
        <span class="grow" />
        <NavFoot />
      </nav>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Palette />
      <AppSwitcherDialog />
    </div>
  );
}

function NavGroup({ group }: { readonly group: (typeof NAV_GROUPS)[number] }) {
  const views = VIEWS.filter(
    ({ nav, needs }) => nav?.group === group && (needs === undefined || hasPermission(needs)),
  );
  if (views.length === 0) return null;
  return (
    <div class="nav-group">
      {group === "App" ? <AppSwitcher /> : <span class="nav-title">{group}</span>}
      <ul>
        {views.map((view) => (
          <NavItem key={view.path} view={view} />
        ))}
      </ul>
    </div>
  );
}

function NavItem({ view }: { readonly view: View }) {
  const { path, route } = useLocation();
  const href = hrefOf(view, useAppId());
  const { nav } = view;
  useShortcut(
    nav && href !== undefined
      ? { keys: `g ${nav.key}`, description: `Go to ${nav.title}`, run: () => route(href) }
      : undefined,
  );
  if (nav === undefined || href === undefined) return null;
  const isHere =
    path === href.replace(/\/$/, "") ||
    (view.path !== "/" && path.startsWith(`${href}/`) && !isCovered(view, path));
  return (
    <li>
      <a href={href} aria-current={isHere ? "page" : undefined}>
        <Icon name={nav.icon} />
        <span>{nav.title}</span>
        {view.path === "/problems" && <ProblemCount />}
      </a>
    </li>
  );
}

function ProblemCount() {
  const open = problems.value?.total ?? 0;
  if (open === 0) return null;
  const hasErrors = problems.value?.rows.some(
    ({ severity, state }) => severity === "error" && state === "opened",
  );
  return (
    <Badge tone={hasErrors ? "bad" : "warn"}>
      {formatShort(open)}
      <span class="sr-only"> open</span>
    </Badge>
  );
}

/** Returns whether another navigation entry fits the path better. For example, `/apps/app_1/catalog` belongs to Catalog and not to Apps. */
const isCovered = (view: View, path: string): boolean =>
  view.path === "/apps" && /^\/console\/apps\/[^/]+\/./.test(path);

function NavFoot() {
  const { account, organization } = caller.value;
  return (
    <div class="nav-foot">
      <p>
        <UntrustedText max={60}>{account.name}</UntrustedText>
        <span class="faint">
          <UntrustedText max={60}>{organization.name}</UntrustedText>
        </span>
      </p>
      <div class="row">
        <Button
          look="quiet icon-only"
          aria-label={`Theme: ${theme.value}`}
          title={`Theme: ${theme.value}`}
          onClick={() => applyTheme(nextTheme())}
        >
          <Icon name={theme.value === "dark" ? "moon" : theme.value === "light" ? "sun" : "auto"} />
        </Button>
        <Button
          look="quiet icon-only"
          aria-label="Keyboard shortcuts"
          title="Keyboard shortcuts (?)"
          onClick={openShortcutHelp}
        >
          <Icon name="help" />
        </Button>
        <a class="button quiet" href="/docs" target="_blank" rel="noreferrer">
          Docs
        </a>
        <span class="grow" />
        <Button look="quiet icon-only" aria-label="Sign out" title="Sign out" onClick={() => signOut()}>
          <Icon name="signOut" />
        </Button>
      </div>
    </div>
  );
}
