// A classic script: it runs wherever it came from.
document.addEventListener('DOMContentLoaded', function () {
  var place = document.getElementById('tide');
  if (place) place.textContent = '4.1 m, rising';
});
