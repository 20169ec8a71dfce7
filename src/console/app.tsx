import { Component, type ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from "preact-iso";
import { formatQuery } from "./api/curl.ts";
import { LiveRegion } from "./kit/feedback/announce.tsx";
import { Empty } from "./kit/feedback/states.tsx";
import { Toasts } from "./kit/feedback/toast.tsx";
import { Button } from "./kit/layout/button.tsx";
import { Page } from "./kit/layout/page.tsx";
import { Shell } from "./kit/layout/shell.tsx";
import { Shortcuts } from "./kit/layout/shortcuts.tsx";
import { startClock } from "./kit/text/time.tsx";
import { FORMER_APP_VIEWS, VIEWS, type View } from "./routes.ts";
import { Callback } from "./session/callback.tsx";
import { hasPermission, session } from "./session/session.ts";
import { SignIn } from "./session/sign-in.tsx";

/** Root of the console. Shows the sign-in form at any address until the user is signed in. */
export function App() {
  useEffect(startClock, []);
  return (
    <LocationProvider scope="/console">
      <Inside />
      <Shortcuts />
      <Toasts />
      <LiveRegion />
    </LocationProvider>
  );
}

function Inside() {
  const { path } = useLocation();
  if (path === "/console/callback") return <Callback />;
  if (session.value.is === "opening") return null;
  if (session.value.is === "out") return <SignIn why={session.value.why} />;
  return (
    <Shell>
      <Failsafe at={path}>
        <ErrorBoundary>
          <Router>
            {VIEWS.map((view) => (
              <Route
                key={view.path}
                path={`/console${view.path === "/" ? "/" : view.path}`}
                component={guard(view)}
              />
            ))}
            {FORMER_APP_VIEWS.map((name) => (
              <Route key={name} path={`/console/apps/:appId/${name}`} component={ToAllApps} />
            ))}
            <Route default component={NoView} />
          </Router>
        </ErrorBoundary>
      </Failsafe>
    </Shell>
  );
}

/** Shows the error of a view instead of the view, so that the navigation keeps working. */
class Failsafe extends Component<
  { readonly at: string; readonly children: ComponentChildren },
  { readonly error?: unknown }
> {
  override state: { readonly error?: unknown } = {};

  override componentDidCatch(error: unknown): void {
    this.setState({ error });
  }

  override componentDidUpdate({ at }: { readonly at: string }): void {
    if (at !== this.props.at && this.state.error !== undefined) this.setState({ error: undefined });
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <Page title="This page failed to load">
        <div class="note bad" role="alert">
          <p>{error instanceof Error ? error.message : String(error)}</p>
          <p>
            <Button onClick={() => location.reload()}>Reload the console</Button>{" "}
            <span class="faint">This can happen after an update of the gateway.</span>
          </p>
        </div>
      </Page>
    );
  }
}

const guarded = new Map<View, View["component"]>();

/**
 * Returns the view's component, or a notice if the caller lacks the permission. Memoized, because a new function on
 * each render would remount the view.
 */
function guard(view: View): View["component"] {
  const { needs, component } = view;
  if (needs === undefined || hasPermission(needs)) return component;
  const found = guarded.get(view);
  if (found) return found;
  const denied = Object.assign(() => <Denied needs={needs} />, { preload: component.preload });
  guarded.set(view, denied);
  return denied;
}

const Denied = ({ needs }: { readonly needs: string }) => (
  <Page title="Permission required">
    <Empty title={`This page needs the permission ${needs}`}>
      Sign in with a key that has this permission, or ask an administrator of your organization.
    </Empty>
  </Page>
);

/** Leads from the former address of a list of one app to the list of all apps, filtered by the app. */
function ToAllApps({ appId = "" }: { readonly appId?: string }) {
  const { path, query, route } = useLocation();
  useEffect(() => {
    const name = path.slice(path.lastIndexOf("/") + 1);
    route(`/console/${name}${formatQuery({ app: appId, ...query })}`, true);
  }, []);
  return null;
}

const NoView = () => (
  <Page title="Page not found">
    <Empty title="The console has no such page">
      <a href="/console/">Go to the overview</a>
    </Empty>
  </Page>
);
