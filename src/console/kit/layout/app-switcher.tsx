import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { formatQuery } from "../../api/curl.ts";
import { UntrustedText } from "../text/untrusted-text.tsx";
import { AppPicker, type PickedApp } from "./app-picker.tsx";
import { apps, loadApp, selectApp, useAppId } from "./apps.tsx";
import { Button } from "./button.tsx";
import { Icon } from "./icons.tsx";
import { problems, problemsFailure } from "./problems.ts";
import { useShortcut } from "./shortcuts.tsx";

/** Removes the parameters that name something in an app, such as its channel or the open row. */
function withoutPlaces(query: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { channel: _, group: __, item: ___, letter: ____, source: _____, event: ______, ...others } = query;
  return others;
}

const isOpen = signal(false);
const open = (): void => {
  isOpen.value = true;
};

/** Title of the navigation group of the selected app, with a button that shows the app's name and health. It opens `AppSwitcherDialog`. */
export function AppSwitcher() {
  const current = useAppId();
  const known = apps.value;
  const app = known?.find(({ id }) => id === current);
  const isMissing = known !== undefined && known.length > 0 && app === undefined;
  useEffect(() => {
    // Ignore a failure. The switcher then shows the id.
    if (isMissing && current !== undefined) void loadApp(current).catch(() => {});
  }, [current, isMissing]);
  const canSwitch = known !== undefined && known.length > 0;
  useShortcut(canSwitch ? { keys: ".", description: "Switch app", run: open } : undefined);
  if (!canSwitch) return <span class="nav-title">App</span>;
  return (
    <div class="app-switcher">
      <span class="nav-title" id="app-switcher-title">
        App
      </span>
      <Button
        look="app-button"
        aria-labelledby="app-switcher-title app-switcher-name"
        aria-haspopup="dialog"
        aria-keyshortcuts="."
        onClick={open}
      >
        <AppDot appId={current} />
        <span id="app-switcher-name" class="app-name">
          <UntrustedText max={80}>{app?.uid ?? current}</UntrustedText>
        </span>
        <Icon name="down" />
      </Button>
    </div>
  );
}

/** Opens the current view for another app. It is outside the navigation, which is hidden in narrow windows. */
export function AppSwitcherDialog() {
  const { path, query, route } = useLocation();
  if (!isOpen.value) return null;
  const close = (): void => {
    isOpen.value = false;
  };
  const pick = (picked: PickedApp): void => {
    close();
    selectApp(picked);
    const view = /^\/console\/apps\/[^/]+(\/[^/]+)?/.exec(path)?.[1] ?? "";
    if (/^\/console\/apps\/[^/]+/.test(path)) route(`/console/apps/${picked.id}${view}`);
    else if (query.app !== undefined)
      route(`${path}${formatQuery({ ...withoutPlaces(query), app: picked.id })}`);
  };
  return <AppPicker title="Switch app" onPick={pick} onClose={close} />;
}

/**
 * Colored dot for the worst problem of an app. The problems are those of the navigation, so that it needs no request. There is no dot
 * while the problems are unknown, or if the list of them is incomplete and has none of the app.
 */
function AppDot({ appId }: { readonly appId: string | undefined }) {
  const known = problems.value;
  if (known === undefined || problemsFailure.value !== undefined) return null;
  const own = known.rows.filter(({ app }) => app?.id === appId);
  if (own.length === 0) return known.isComplete ? <span class="dot ok" title="no problems" /> : null;
  const hasErrors = own.some(({ severity }) => severity === "error");
  const title = `${own.length} ${own.length === 1 ? "problem" : "problems"}`;
  return <span class={`dot ${hasErrors ? "bad" : "warn"}`} title={title} />;
}
