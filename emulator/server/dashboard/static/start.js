addEventListener("hashchange", () => {
  if (!keeps) said = null;
  keeps = false;
  opened.clear();
  refresh();
});
setInterval(tick, 250);
draw();
refresh().then(follow);
