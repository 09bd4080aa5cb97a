"use strict";
// Plays a call from wherever its picture, or an instant in its text, is clicked, and shows where it is.
const WIDTH = 100, WIDEST = 800, FAR = 55, FARTHER = 14, FARTHEST = 3;

function clock(seconds) {
  const whole = Math.floor(seconds / 60);
  return `${whole}:${(seconds - 60 * whole).toFixed(2).padStart(5, "0")}`;
}

for (const call of document.querySelectorAll(".call")) {
  const audio = call.querySelector("audio"), scroll = call.querySelector(".scroll");
  const axis = scroll.querySelector(".axis"), cursor = axis.querySelector(".cursor"), hover = axis.querySelector(".hover");
  const overview = call.querySelector(".overview"), view = overview.querySelector(".window");
  const place = overview.querySelector(".cursor"), length = Number(scroll.dataset.length);
  let width = WIDTH;

  const xOf = (seconds) => axis.clientWidth * Math.min(seconds / length, 1);
  const secondsAt = (event, picture = axis) => {
    const box = picture.getBoundingClientRect();
    return Math.max(0, Math.min(length, (event.clientX - box.left) / box.width * length));
  };
  const show = () => {
    const at = audio.currentTime;
    cursor.style.transform = `translateX(${xOf(at)}px)`;
    place.style.transform = `translateX(${overview.clientWidth * Math.min(at / length, 1)}px)`;
    scroll.setAttribute("aria-valuenow", at.toFixed(2));
    scroll.setAttribute("aria-valuetext", clock(at));
  };
  const reveal = () => {
    const x = xOf(audio.currentTime), left = scroll.scrollLeft, seen = scroll.clientWidth;
    if (x < left || x > left + 0.9 * seen) scroll.scrollLeft = x - 0.2 * seen;
  };
  const play = (seconds) => {
    for (const other of document.querySelectorAll("audio")) if (other !== audio) other.pause();
    audio.currentTime = seconds;
    show();
    reveal();
    audio.play().catch(() => {});
  };
  const zoom = (wanted) => {
    const at = audio.currentTime, fit = scroll.clientWidth / length;
    width = Math.max(Math.min(fit, WIDTH), Math.min(WIDEST, wanted));
    axis.style.setProperty("--px", width);
    axis.classList.toggle("far", width < FAR);
    axis.classList.toggle("farther", width < FARTHER);
    axis.classList.toggle("farthest", width < FARTHEST);
    audio.currentTime = at;
    show();
    reveal();
  };
  const look = () => {
    const share = overview.clientWidth / axis.clientWidth;
    view.style.transform = `translateX(${scroll.scrollLeft * share}px)`;
    view.style.width = `${scroll.clientWidth * share}px`;
  };
  const frame = () => {
    show();
    if (!audio.paused) {
      reveal();
      requestAnimationFrame(frame);
    }
  };

  audio.addEventListener("play", frame);
  audio.addEventListener("seeked", show);
  scroll.addEventListener("scroll", look);
  new ResizeObserver(look).observe(axis);
  overview.addEventListener("click", (event) => play(secondsAt(event, overview)));
  scroll.addEventListener("click", (event) => play(secondsAt(event)));
  scroll.addEventListener("mousemove", (event) => {
    const at = secondsAt(event);
    hover.style.visibility = "visible";
    hover.style.transform = `translateX(${xOf(at)}px)`;
    hover.dataset.at = clock(at);
  });
  scroll.addEventListener("mouseleave", () => { hover.style.visibility = "hidden"; });
  scroll.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 5 : 1, at = audio.currentTime;
    const places = { ArrowLeft: at - step, ArrowRight: at + step, Home: 0, End: length };
    if (event.key === " ") {
      if (audio.paused) play(at); else audio.pause();
    } else if (event.key === "+" || event.key === "-") {
      zoom(event.key === "+" ? width * 1.5 : width / 1.5);
    } else if (event.key in places) {
      audio.currentTime = Math.max(0, places[event.key]);
      show();
      reveal();
    } else return;
    event.preventDefault();
  });
  for (const button of call.querySelectorAll("[data-zoom]")) {
    const ways = { in: () => width * 1.5, out: () => width / 1.5, fit: () => 0 };
    button.addEventListener("click", () => zoom(ways[button.dataset.zoom]()));
  }
  for (const link of call.querySelectorAll("[data-t]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      play(Number(link.dataset.t));
      scroll.scrollIntoView({ block: "nearest" });
    });
  }
  const worst = call.querySelector(".moments [data-t]");
  if (worst) scroll.scrollLeft = xOf(Number(worst.dataset.t)) - 0.3 * scroll.clientWidth;
  look();
}
